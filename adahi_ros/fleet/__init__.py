"""The policies of a verifier on Ray Serve: the file of a fleet, replicas, and the verifier's end of them."""
