"""Events looked up in a service and scored: operators that wait, so that few cores carry many replicas."""
