"""The robot's node: wiring between topics, the control loop and the services."""
