package dev.timecached.client;

import dev.timecached.v1.ContainsRequest;
import dev.timecached.v1.PutCondition;

/**
 * What must hold of a key that is looked for: for a batch that is {@link Batch#atomic}, a condition
 * on a key that does not change. Immutable: each method returns options of its own. {@code
 * ifAbsent}, {@code ifPresent} and {@code ifVersion} exclude each other: the second throws an
 * {@link IllegalStateException}.
 */
public final class ContainsOptions {
  static final ContainsOptions DEFAULT = new ContainsOptions();

  final ContainsRequest request;

  /** Nothing need hold. */
  public ContainsOptions() {
    this(ContainsRequest.getDefaultInstance());
  }

  private ContainsOptions(ContainsRequest request) {
    this.request = request;
  }

  /** The key is not there; else FAILED_PRECONDITION, KEY_EXISTS. */
  public ContainsOptions ifAbsent() {
    return condition(PutCondition.PUT_CONDITION_IF_ABSENT);
  }

  /** The key is there; else FAILED_PRECONDITION, KEY_NOT_FOUND. */
  public ContainsOptions ifPresent() {
    return condition(PutCondition.PUT_CONDITION_IF_PRESENT);
  }

  /** It has this version; else FAILED_PRECONDITION, KEY_NOT_FOUND or VERSION_MISMATCH. */
  public ContainsOptions ifVersion(long version) {
    if (request.hasCondition()) {
      throw excluded();
    }
    return new ContainsOptions(request.toBuilder().setIfVersion(version).build());
  }

  private ContainsOptions condition(PutCondition condition) {
    if (request.hasIfVersion() || (request.hasCondition() && request.getCondition() != condition)) {
      throw excluded();
    }
    return new ContainsOptions(request.toBuilder().setCondition(condition).build());
  }

  private static IllegalStateException excluded() {
    return new IllegalStateException("give one of ifAbsent, ifPresent and ifVersion");
  }
}
