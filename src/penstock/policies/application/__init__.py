"""Application Managers: which requests of the Operator and Node Managers are granted."""
