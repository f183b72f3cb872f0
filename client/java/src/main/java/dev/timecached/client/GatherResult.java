package dev.timecached.client;

import java.util.Optional;

/**
 * What a gather came to.
 *
 * @param parts all parts, if this was the last one: the key is gone then
 * @param version the entry's; 0 if it is complete
 * @param count how many parts are in, this one included
 * @param duplicate whether the part was in, with this value: nothing has changed
 */
public record GatherResult(
    Optional<GatheredParts> parts, long version, int count, boolean duplicate) {}
