"""The control loop and the ports through which it sees and acts."""
