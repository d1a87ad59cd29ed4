package org.shinglefold.fold;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Which hit of a group to show: by name, with the field it reads and the values it prefers.
 *
 * @param name one of {@link #NAMES}
 * @param field the field it reads; empty if it reads none
 * @param values the preferred values, best first
 */
public record Policy(String name, String field, List<String> values) {
    /** The names of the policies. */
    public static final Set<String> NAMES = Set.of(
        "rank", "newest", "oldest", "longest", "prefer", "shortest_url", "https_first"
    );
    private static final Set<String> OF_URLS = Set.of("shortest_url", "https_first");

    public Policy {
        if (!NAMES.contains(name)) {
            throw new IllegalArgumentException(
                "representative: the plugin takes " + String.join(", ", NAMES.stream().sorted().toList())
                    + ", got [" + name + "]; search with the Python client for other policies"
            );
        }
        field = field.isEmpty() && OF_URLS.contains(name) ? "url" : field;
        boolean plain = name.equals("rank") || name.equals("longest");
        if (field.isEmpty() && !plain) {
            throw new IllegalArgumentException(name + " needs a field, such as \"" + name + ":published\"");
        }
        if (values.isEmpty() && name.equals("prefer")) {
            throw new IllegalArgumentException(
                "prefer needs values, best first, such as \"prefer:" + field + "=example.org,example.com\""
            );
        }
    }

    /** Returns the one to show: the least by the first policy, then by the second …, then by rank. */
    static Candidate choose(List<Policy> policies, List<Candidate> candidates) {
        Comparator<Candidate> order = Comparator.comparingInt(Candidate::place);
        for (int at = policies.size() - 1; at >= 0; at--) {
            Policy policy = policies.get(at);
            Comparator<Candidate> rest = order;
            order = Comparator.comparingDouble(policy::cost).thenComparing(rest);
        }
        return candidates.stream().min(order).orElseThrow();
    }

    private double cost(Candidate one) {
        List<Object> found = field.isEmpty() ? List.of() : one.row().values(field);
        return switch (name) {
            case "longest" -> -one.fingerprint().shingles();
            case "newest" -> byDate(found, -1);
            case "oldest" -> byDate(found, 1);
            case "prefer" -> found.stream().mapToInt(this::position).min().orElse(values.size());
            case "shortest_url" -> found.stream().map(Values::text)
                .mapToDouble(url -> url.codePointCount(0, url.length())).min().orElse(Double.POSITIVE_INFINITY);
            case "https_first" -> found.stream().map(Values::text)
                .anyMatch(url -> url.toLowerCase(Locale.ROOT).startsWith("https:")) ? 0 : 1;
            default -> one.place();
        };
    }

    private static double byDate(List<Object> found, int sign) {
        return found.stream().mapToDouble(Values::moment).filter(when -> !Double.isNaN(when))
            .map(when -> sign * when).min().orElse(Double.POSITIVE_INFINITY);
    }

    private int position(Object value) {
        return Values.spellings(value).stream().mapToInt(values::indexOf).filter(at -> at >= 0).min()
            .orElse(values.size());
    }
}
