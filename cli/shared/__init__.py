"""What commands share: options, the index they work on, how they run, and how results are printed."""
