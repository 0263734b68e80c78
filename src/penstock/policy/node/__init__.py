"""Node Managers: where new replicas go, and which ones leave an overloaded node."""
