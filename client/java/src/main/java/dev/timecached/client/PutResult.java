package dev.timecached.client;

import java.util.Optional;

/**
 * What a put did.
 *
 * @param version the new entry's
 * @param previous the entry that was replaced, if there was one and {@link
 *     PutOptions#returnPrevious} asked for it
 */
public record PutResult(long version, Optional<Entry> previous) {}
