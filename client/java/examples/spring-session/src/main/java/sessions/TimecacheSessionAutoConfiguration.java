package sessions;

import dev.timecached.client.EventHandler;
import dev.timecached.client.GroupWorker;
import dev.timecached.client.GroupWorkerOptions;
import dev.timecached.client.TimecacheClient;
import dev.timecached.client.TimecacheException;
import dev.timecached.client.Times;
import dev.timecached.v1.ErrorReason;
import dev.timecached.v1.NamespaceOptions;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.session.SessionRepository;
import org.springframework.session.config.annotation.web.http.EnableSpringHttpSession;
import org.springframework.session.events.SessionExpiredEvent;

/**
 * What an application gets that has this on its class path: its HTTP sessions are in timecached, and
 * a SessionExpiredEvent, with the session's attributes, is published at one of its instances when a
 * session ends unused. Properties: timecache.address (127.0.0.1:7171), timecache.session.namespace
 * (sessions) and timecache.session.timeout in seconds (1800).
 */
@AutoConfiguration
@EnableSpringHttpSession
@ConditionalOnMissingBean(SessionRepository.class)
public class TimecacheSessionAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean
  TimecacheClient timecacheClient(@Value("${timecache.address:127.0.0.1:7171}") String address) {
    return TimecacheClient.connect(address);
  }

  @Bean
  TimecacheSessionRepository sessionRepository(
      TimecacheClient client,
      @Value("${timecache.session.namespace:sessions}") String namespace,
      @Value("${timecache.session.timeout:1800}") long seconds) {
    Duration timeout = Duration.ofSeconds(seconds);
    try {
      client.createNamespace(
          namespace, NamespaceOptions.newBuilder().setTtl(Times.toProto(timeout)).build());
    } catch (TimecacheException e) {
      if (!e.is(ErrorReason.NAMESPACE_EXISTS)) {
        throw e;
      }
    }
    return new TimecacheSessionRepository(client.in(namespace), timeout);
  }

  /** At least once: an instance that dies leaves its events to the others. */
  @Bean(destroyMethod = "close")
  GroupWorker sessionEndings(
      TimecacheClient client,
      TimecacheSessionRepository repository,
      ApplicationEventPublisher publisher,
      @Value("${timecache.session.namespace:sessions}") String namespace) {
    return client
        .in(namespace)
        .worker(
            new GroupWorkerOptions("spring-session").waitForServer(),
            EventHandler.acking(
                event ->
                    publisher.publishEvent(
                        new SessionExpiredEvent(repository, repository.ended(event)))));
  }
}
