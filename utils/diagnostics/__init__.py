"""What finds out why numbers go wrong: NaN hunting, dtypes under autocast, faults to practise on."""
