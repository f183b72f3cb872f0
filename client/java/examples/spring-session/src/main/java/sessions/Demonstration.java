package sessions;

import dev.timecached.client.TimecacheClient;
import jakarta.servlet.Filter;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.MapPropertySource;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.session.events.SessionExpiredEvent;

/**
 * Requests of a browser that logs in, fills a basket and goes away.
 *
 * <p>Argument: the address of a server with --virtual-clock, which it moves on by itself.
 */
@EnableAutoConfiguration
public class Demonstration {
  private final CountDownLatch ended = new CountDownLatch(1);

  @EventListener
  void onEnd(SessionExpiredEvent event) {
    System.out.println("ended: " + event.getSession().getAttribute("basket"));
    ended.countDown();
  }

  private static MockHttpServletResponse request(
      Filter filter, Cookie cookie, Consumer<HttpServletRequest> page) throws Exception {
    MockHttpServletRequest request = new MockHttpServletRequest();
    if (cookie != null) {
      request.setCookies(cookie);
    }
    MockHttpServletResponse response = new MockHttpServletResponse();
    filter.doFilter(
        request, response, (wrapped, unused) -> page.accept((HttpServletRequest) wrapped));
    return response;
  }

  public static void main(String[] args) throws Exception {
    try (var context = new AnnotationConfigApplicationContext()) {
      context
          .getEnvironment()
          .getPropertySources()
          .addFirst(new MapPropertySource("arguments", Map.of("timecache.address", args[0])));
      context.register(Demonstration.class);
      context.refresh();
      Filter filter = context.getBean("springSessionRepositoryFilter", Filter.class);
      TimecacheClient client = context.getBean(TimecacheClient.class);

      Cookie anonymous =
          request(filter, null, page -> page.getSession().setAttribute("basket", "a lamp"))
              .getCookie("SESSION");
      client.virtualClock().advance(Duration.ofMinutes(20));
      // A login changes the id, so that one that was planted is of no use.
      Cookie known =
          request(filter, anonymous, HttpServletRequest::changeSessionId).getCookie("SESSION");
      client.virtualClock().advance(Duration.ofMinutes(20));
      request(
          filter,
          anonymous,
          page -> System.out.println("the old id: " + page.getSession(false)));
      request(
          filter,
          known,
          page -> System.out.println("the new id: " + page.getSession().getAttribute("basket")));
      client.virtualClock().advance(Duration.ofMinutes(31));
      context.getBean(Demonstration.class).ended.await();
    }
  }
}
