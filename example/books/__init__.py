"""The app of the example site: a catalogue of a few hundred books."""
