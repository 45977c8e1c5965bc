"""Plots of several widgets, and the histograms by binades that some of them show."""
