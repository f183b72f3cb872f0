package dev.timecached.client;

import java.util.Optional;

/**
 * What a remove did.
 *
 * @param removed whether the key was there
 * @param previous the entry that was removed, if there was one and {@link
 *     RemoveOptions#returnPrevious} asked for it
 */
public record RemoveResult(boolean removed, Optional<Entry> previous) {}
