"""The parts of HTTP that the REST API and the panel share: routes from the catalogue, and the status of refusals."""
