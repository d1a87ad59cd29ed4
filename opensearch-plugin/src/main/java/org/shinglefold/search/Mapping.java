package org.shinglefold.search;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.opensearch.common.compress.CompressedXContent;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.XContentType;
import org.shinglefold.fold.Scheme;

/**
 * The mapping of an index.
 *
 * @param index its name
 * @param source the mapping as JSON
 * @param scheme the scheme of its recipe; null if it has none, or one that can't be read
 * @param problem why the recipe can't be read; empty if it can, or if there is none
 * @param size the bytes of the JSON
 */
record Mapping(String index, Map<String, Object> source, Scheme scheme, String problem, int size) {
    /** Types without doc values. */
    private static final Set<String> NO_DOC_VALUES = Set.of(
        "text", "match_only_text", "annotated_text", "search_as_you_type", "completion", "flat_object", "percolator",
        "rank_feature", "rank_features"
    );
    /** What sorts take for a field, and all fields of every document that no mapping names. */
    private static final Set<String> POSITIONS = Set.of("_score", "_doc", "_shard_doc"), METADATA = Set.of(
        "_id", "_index", "_seq_no", "_routing", "_version", "_ignored", "_score", "_doc", "_shard_doc"
    );
    /** Why an index has no values of a field that another may have. */
    static final Set<String> ABSENT = Set.of("an object", "not mapped");
    /** Types whose values servers skip by without losing hits. */
    private static final Set<String> EXACT = Set.of(
        "long", "integer", "short", "byte", "double", "float", "unsigned_long", "boolean", "date", "date_nanos",
        "keyword", "constant_keyword", "ip", "text"
    );
    /** Types of objects whose keys no mapping names, and values of "dynamic" that keep fields unmapped. */
    private static final Set<String> FLAT = Set.of("flat_object", "object"), UNMAPPED = Set.of("false", "runtime");
    private static final Set<String> EXACT_FORMATS = Set.of(
        "strict_date_optional_time||epoch_millis", "epoch_millis"
    );

    private static final Set<Object> DATES = Set.of("date", "date_nanos");
    /** Other types whose values may be read as dates: as milliseconds, or as text in ISO 8601. */
    private static final Set<Object> LIKE_DATES = Set.of(
        "byte", "short", "integer", "long", "unsigned_long", "double", "float", "half_float", "scaled_float", "keyword",
        "constant_keyword", "wildcard"
    );
    /** Formats of dates that are read as they are: ISO 8601, or milliseconds since 1970. */
    private static final Set<Object> READABLE = Set.of(
        "strict_date_optional_time||epoch_millis", "strict_date_optional_time",
        "strict_date_optional_time_nanos||epoch_millis", "epoch_millis"
    );

    /** Parses a mapping, {@code null} for an index without one. Cost: some µs for each field. */
    static Mapping of(String index, CompressedXContent stored) {
        if (stored == null) {
            return new Mapping(index, Map.of(), null, "", 0);
        }
        var json = stored.uncompressed();
        Map<String, Object> all = XContentHelper.convertToMap(json, true, XContentType.JSON).v2();
        Map<String, Object> source = all.size() == 1 && all.containsKey("_doc") ? map(all, "_doc") : all;
        Map<String, Object> recipe = map(map(source, "_meta"), "shinglefold");
        Scheme scheme = null;
        String problem = "";
        try {
            scheme = recipe.containsKey("id") ? Scheme.of(recipe) : null;
        } catch (IllegalArgumentException broken) {
            problem = "index '" + index + "': " + broken.getMessage();
        }
        return new Mapping(index, source, scheme, problem, json.length());
    }

    /** Returns whether hits may have fingerprints of a scheme that can be read without a key. */
    boolean hasFingerprints(Scheme scheme) {
        if (definition(scheme.field() + ".digest").isEmpty()) {
            return false;
        }
        if (this.scheme == null) {
            return problem.isEmpty();
        }
        boolean same = this.scheme.id().equals(scheme.id()) && this.scheme.field().equals(scheme.field());
        return same && this.scheme.sealed().isEmpty();
    }

    /** Returns why doc values of the fingerprints can't be read; null if they can. */
    String unreadable(String field) {
        for (String part : new String[] {"digest", "signature"}) {
            String name = field + "." + part, how = definition(name).map(Mapping::withoutDocValues).orElse("");
            if (!how.isEmpty()) {
                return "index '" + index + "': " + name + " is " + how + ", so that its values can't be read";
            }
        }
        return null;
    }

    /** Returns how a field is mapped, if without doc values; else an empty text. */
    private static String withoutDocValues(Map<String, Object> definition) {
        String type = String.valueOf(definition.get("type"));
        if (NO_DOC_VALUES.contains(type) && !Boolean.TRUE.equals(definition.get("fielddata"))) {
            return "mapped as " + type;
        }
        boolean none = Boolean.FALSE.equals(definition.getOrDefault("doc_values", !type.equals("binary")));
        return none ? "mapped without doc values" : "";
    }

    /** Returns why hits return no values of a field; empty if they do, or may do later. */
    String valueless(String name) {
        if (METADATA.contains(name)) {
            return POSITIONS.contains(name) ? "no stored field" : "";
        }
        if (name.contains("*")) {
            return "a pattern";
        }
        if (isNested(name)) {
            return "a field of nested documents";
        }
        Map<String, Object> found = definition(name).orElse(null);
        if (found != null) {
            return "object".equals(found.getOrDefault("type", "object")) ? "an object" : withoutDocValues(found);
        }
        for (int dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
            // Servers return the values of the keys of a flat object.
            if ("flat_object".equals(definition(name.substring(0, dot)).orElse(Map.of()).get("type"))) {
                return "";
            }
        }
        return mayCome(name) ? "" : "not mapped";
    }

    /** Returns the keyword that a text is mapped as, too; null if there is none. */
    String keywordOf(String name) {
        Map<String, Object> fields = map(definition(name).orElse(Map.of()), "fields");
        return fields.keySet().stream().filter(one -> "keyword".equals(map(fields, one).get("type"))).sorted()
            .findFirst().map(one -> target(name) + "." + one).orElse(null);
    }

    /** Returns whether documents may bring a field that is not mapped yet. */
    private boolean mayCome(String name) {
        Map<String, Object> node = source;
        String dynamic = "true";
        for (String part : name.split("\\.", -1)) {
            boolean off = Boolean.FALSE.equals(node.get("enabled"));
            dynamic = off ? "false" : String.valueOf(node.getOrDefault("dynamic", dynamic));
            node = map(map(node, "properties"), part);
        }
        return !Set.of("false", "strict").contains(dynamic);
    }

    /** Returns whether documents may have a field; below flat and unmapped objects they may have any. */
    boolean mayHave(String name) {
        if (METADATA.contains(name) || name.contains("*")) {
            return true;
        }
        Map<String, Object> node = source;
        for (String part : name.split("\\.", -1)) {
            Map<String, Object> properties = map(node, "properties"), fields = map(node, "fields");
            boolean flat = node != source && properties.isEmpty() && fields.isEmpty()
                && FLAT.contains(String.valueOf(node.getOrDefault("type", "object")));
            boolean unmapped = UNMAPPED.contains(String.valueOf(node.get("dynamic")));
            if (flat || unmapped || Boolean.FALSE.equals(node.get("enabled"))) {
                return true;
            }
            if (!properties.containsKey(part) && !fields.containsKey(part)) {
                return false;
            }
            node = properties.containsKey(part) ? map(properties, part) : map(fields, part);
        }
        return true;
    }

    /** Returns whether sorting by a field loses no hits. */
    boolean sortsExactly(String name) {
        Map<String, Object> found = definition(name).orElse(Map.of());
        Object format = found.get("format");
        boolean exact = format == null || EXACT_FORMATS.contains(String.valueOf(format));
        return exact && EXACT.contains(String.valueOf(found.get("type"))) && !isNested(name);
    }

    /** Returns whether a field is a date in a format that folding does not read. */
    boolean isUnreadableDate(String name) {
        Map<String, Object> found = definition(name).orElse(Map.of());
        Object format = found.get("format");
        // Those of milliseconds have a fraction.
        boolean fraction = "date_nanos".equals(found.get("type")) && "epoch_millis".equals(format);
        return !isNoDate(name) && format != null && (fraction || !READABLE.contains(format));
    }

    /** Returns whether a field is mapped, and as another type than a date. */
    boolean isNoDate(String name) {
        return definition(name).map(found -> !DATES.contains(String.valueOf(found.get("type")))).orElse(false);
    }

    /** Returns the type of a field if it has no dates; null if it has some, or if there is no such field. */
    String typeWithoutDates(String name) {
        String type = definition(name).map(found -> String.valueOf(found.getOrDefault("type", "object"))).orElse(null);
        return type == null || DATES.contains(type) || LIKE_DATES.contains(type) ? null : type;
    }

    /** Returns whether a field is in nested documents. */
    boolean isNested(String name) {
        Map<String, Object> node = source;
        for (String part : target(name).split("\\.", -1)) {
            node = map(map(node, "properties"), part);
            if ("nested".equals(node.get("type"))) {
                return true;
            }
        }
        return false;
    }

    /** Returns the definition of a field or multi-field, or of the field that an alias stands for. */
    Optional<Map<String, Object>> definition(String name) {
        return own(target(name));
    }

    private String target(String name) {
        Map<String, Object> found = own(name).orElse(Map.of());
        return "alias".equals(found.get("type")) ? String.valueOf(found.get("path")) : name;
    }

    private Optional<Map<String, Object>> own(String name) {
        Map<String, Object> node = source;
        for (String part : name.split("\\.", -1)) {
            Map<String, Object> properties = map(node, "properties"), fields = map(node, "fields");
            if (!properties.containsKey(part) && !fields.containsKey(part)) {
                return Optional.empty();
            }
            node = properties.containsKey(part) ? map(properties, part) : map(fields, part);
        }
        return Optional.of(node);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Map<String, Object> of, String name) {
        return of.get(name) instanceof Map<?, ?> found ? (Map<String, Object>) found : Map.of();
    }
}
