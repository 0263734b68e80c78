"""High-frequency trading (De Matteis 2017, sec. 5.1): quotes per symbol, estimated prices, candlesticks."""
