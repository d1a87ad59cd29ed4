package org.shinglefold.search;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.FoldOptions.Scope;
import org.shinglefold.fold.Policy;

/** Reads the options of {@code ext.dedup}; what the plugin does not do is refused by name. */
public final class OptionsParser {
    private static final int MOST_ENTRIES = 16, MOST_VALUES = 1000, MOST_NAME = 512;
    /** The most hits that are read: more would keep a thread of the server busy. */
    private static final int MOST_HITS = 1000;
    private static final Pattern SPAN = Pattern.compile("(\\d+(?:\\.\\d+)?)(ms|s|m|h|d|w)");
    private static final Map<String, Double> SECONDS = Map.of(
        "ms", 0.001, "s", 1.0, "m", 60.0, "h", 3600.0, "d", 86400.0, "w", 604800.0
    );
    /** Options that only the Python client has, with the value that asks for nothing of it. */
    private static final Map<String, Object> OF_PYTHON = Map.of(
        "linkage", "leader", "verify", "signature", "explain", false, "cursor", false, "renew", false,
        "mode", "server", "facets", "documents", "inner_hits", List.of(), "on_trouble", "unfolded"
    );
    private static final List<String> KNOWN = List.of(
        "min_resemblance", "min_shared", "min_length_ratio", "representative", "members", "window",
        "max_window", "scope", "fold"
    );

    private OptionsParser() {}

    /**
     * Returns the options.
     *
     * @throws IllegalArgumentException an option is unknown, not valid, or only taken by the Python client
     */
    public static FoldOptions parse(Map<String, Object> given) {
        for (Map.Entry<String, Object> option : given.entrySet()) {
            if (OF_PYTHON.containsKey(option.getKey())) {
                if (!OF_PYTHON.get(option.getKey()).equals(option.getValue())) {
                    throw forPython(option.getKey() + " [" + option.getValue() + "]");
                }
            } else if (!KNOWN.contains(option.getKey())) {
                throw new IllegalArgumentException(
                    "ext.dedup: unknown option [" + option.getKey() + "]; the plugin knows " + String.join(", ", KNOWN)
                );
            }
        }
        Integer window = whole(given, "window", 200, 1, MOST_HITS);
        Integer most = given.containsKey("max_window") ? whole(given, "max_window", 0, 1, 10_000) : MOST_HITS;
        if (most > MOST_HITS) {
            throw forPython("max_window above " + MOST_HITS);
        }
        if (window > most) {
            throw new IllegalArgumentException(
                "window " + window + " is above max_window " + most + ": lower it or raise the cap"
            );
        }
        return new FoldOptions(
            fraction(given, "min_resemblance"),
            given.get("min_shared") == null ? null : whole(given, "min_shared", null, 0, 1024),
            fraction(given, "min_length_ratio"),
            list(given, "representative", OptionsParser::policy),
            list(given, "scope", OptionsParser::scope),
            members(given),
            window,
            most,
            flag(given.getOrDefault("fold", true))
        );
    }

    /** Returns the error for something that only the Python client does. */
    static IllegalArgumentException forPython(String what) {
        return new IllegalArgumentException(
            "ext.dedup: the plugin does not take " + what + "; search with the Python client (FoldedSearch) instead"
        );
    }

    private static int members(Map<String, Object> given) {
        if (!(given.get("members") instanceof Map<?, ?> parts)) {
            return whole(given, "members", 5, 0, 1000);
        }
        for (Object name : parts.keySet()) {
            if (!name.equals("size")) {
                throw forPython("[" + name + "] of members");
            }
        }
        return whole(parts, "size", 5, 0, 1000);
    }

    private static Policy policy(Object given) {
        if (given instanceof String text) {
            String[] named = text.split(":", 2);
            String[] rest = named.length < 2 ? new String[] {""} : named[1].split("=", 2);
            List<String> values = rest.length < 2
                ? List.of() : List.of(rest[1].split(",")).stream().filter(one -> !one.isEmpty()).toList();
            return new Policy(named[0], rest[0], values);
        }
        if (given instanceof Map<?, ?> map && map.size() == 1) {
            Map.Entry<?, ?> only = map.entrySet().iterator().next();
            if (only.getValue() instanceof String field) {
                return new Policy((String) only.getKey(), field, List.of());
            }
            if (only.getValue() instanceof Map<?, ?> parts && List.of("field", "values").containsAll(parts.keySet())) {
                return new Policy((String) only.getKey(), name(parts.get("field"), ""), strings(parts.get("values")));
            }
        }
        throw new IllegalArgumentException(
            "representative: expected a policy such as \"newest:published\" or "
                + "{\"prefer\": {\"field\": \"host\", \"values\": [\"example.org\"]}}, got [" + given + "]"
        );
    }

    private static Scope scope(Object given) {
        if (given instanceof String text && !text.isEmpty()) {
            String[] parts = text.split(":", 2);
            return new Scope(name(parts[0], null), parts.length < 2 || parts[1].isEmpty() ? null : seconds(parts[1]));
        }
        if (given instanceof Map<?, ?> parts && List.of("field", "within").containsAll(parts.keySet())) {
            Object within = parts.get("within");
            return new Scope(name(parts.get("field"), null), parts.containsKey("within") ? seconds(within) : null);
        }
        throw new IllegalArgumentException(
            "scope: expected a field, or {\"field\": \"published\", \"within\": \"7d\"}, got [" + given + "]"
        );
    }

    private static double seconds(Object given) {
        Matcher match = SPAN.matcher(String.valueOf(given));
        if (!(given instanceof String) || !match.matches()) {
            throw new IllegalArgumentException(
                "within: expected a number and one of ms, s, m, h, d, w, such as 7d, got [" + given + "]"
            );
        }
        return Double.parseDouble(match.group(1)) * SECONDS.get(match.group(2));
    }

    private static <T> List<T> list(Map<String, Object> given, String name, Function<Object, T> read) {
        Object found = given.get(name);
        List<?> several = found instanceof List<?> entries ? entries
            : given.containsKey(name) ? Collections.singletonList(found) : List.of();
        if (several.size() > MOST_ENTRIES) {
            throw new IllegalArgumentException(name + ": at most " + MOST_ENTRIES + ", got " + several.size());
        }
        List<T> result = new ArrayList<>();
        several.forEach(one -> result.add(read.apply(one)));
        return result;
    }

    private static List<String> strings(Object given) {
        List<?> several = given instanceof List<?> entries ? entries : List.of();
        boolean texts = several.stream().allMatch(String.class::isInstance) && several.size() <= MOST_VALUES;
        if (!texts || given != null && !(given instanceof List)) {
            throw new IllegalArgumentException("values: expected at most " + MOST_VALUES + " strings");
        }
        return several.stream().map(String.class::cast).toList();
    }

    private static String name(Object given, String otherwise) {
        if (given == null && otherwise != null) {
            return otherwise;
        }
        if (given instanceof String name && !name.isEmpty() && name.length() <= MOST_NAME) {
            return name;
        }
        throw new IllegalArgumentException("field: expected the name of a field, got [" + given + "]");
    }

    private static Integer whole(Map<?, ?> given, String name, Integer otherwise, int least, int most) {
        Object found = given.get(name);
        if (found == null && !given.containsKey(name)) {
            return otherwise;
        }
        if (found instanceof Integer number && number >= least && number <= most) {
            return number;
        }
        throw new IllegalArgumentException(
            name + ": expected a whole number from " + least + " to " + most + ", got [" + found + "]"
        );
    }

    private static Double fraction(Map<String, Object> given, String name) {
        Object found = given.get(name);
        if (found == null) {
            return null;
        }
        if (found instanceof Number number && number.doubleValue() >= 0 && number.doubleValue() <= 1) {
            return number.doubleValue();
        }
        throw new IllegalArgumentException(name + ": expected a number from 0 to 1, got [" + found + "]");
    }

    private static boolean flag(Object given) {
        if (given instanceof Boolean flag) {
            return flag;
        }
        throw new IllegalArgumentException("fold: expected true or false, got [" + given + "]");
    }
}
