"""What nodes of several trades share."""
