package dev.timecached.client;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skipped, with a word, where TIMECACHED names no server program: as where a user builds. */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(NeedsServer.Condition.class)
@interface NeedsServer {
  /** Says so once. */
  final class Condition implements ExecutionCondition {
    private static final String REASON =
        "tests against a server are skipped: set TIMECACHED to the timecached program to run them";
    private static final AtomicBoolean SAID = new AtomicBoolean();

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      String program = System.getenv("TIMECACHED");
      if (program != null && !program.isEmpty()) {
        return ConditionEvaluationResult.enabled("there is a server program");
      }
      if (!SAID.getAndSet(true)) {
        System.out.println(REASON);
      }
      return ConditionEvaluationResult.disabled(REASON);
    }
  }
}
