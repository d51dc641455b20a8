"""The example site's own app: a publisher's catalogue, a few hundred books big."""
