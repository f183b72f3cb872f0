package dev.timecached.client;

/**
 * What a namespace holds.
 *
 * @param entries live ones
 * @param bytes of their keys and values
 */
public record SizeResult(long entries, long bytes) {}
