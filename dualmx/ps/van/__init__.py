"""Vans: transports of messages between the processes of a job."""
