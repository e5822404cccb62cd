"""What the REST API and the panel share about HTTP: routes from the catalogue, and the status of refusals."""
