/**
 * Structures that applications build from timecached's operations. Each class says what it
 * guarantees and costs, and what a call without an answer means. They have the keys and bytes that
 * the recipes of the other clients have: a lock that is taken in one language is taken in all.
 */
package dev.timecached.client.recipes;
