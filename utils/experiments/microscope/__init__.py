"""The microscope: find out from crafted inputs alone how a matrix product adds."""
