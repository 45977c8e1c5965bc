"""The microscope: what adds behind a matrix product, found out from crafted inputs alone."""
