package dev.timecached.client;

/**
 * What an add or xor came to.
 *
 * @param result the new value
 * @param version the entry's new one; 0 if it was removed
 * @param created whether the key was not there, and is now
 * @param removed whether it is not there now, as the result was 0
 */
public record CombineResult(long result, long version, boolean created, boolean removed) {}
