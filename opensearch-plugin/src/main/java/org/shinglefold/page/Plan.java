package org.shinglefold.page;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.common.regex.Regex;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.fetch.subphase.FieldAndFormat;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.Matcher;
import org.shinglefold.fold.Policy;
import org.shinglefold.fold.Scheme;

/**
 * How the hits of one search are read and folded.
 *
 * @param original the request without our options
 * @param options how to fold
 * @param scheme the scheme to fold by; null if the hits can't be folded
 * @param dates the fields whose dates are read as ISO 8601, not in the format of their mappings
 * @param reason why the hits can't be folded; empty if they can
 * @param shards how many shards are searched
 * @param most the most hits that the indices return at a time
 * @param task the task of the search, which further searches end with
 * @param whole whether hits are read with everything that the request returns of them
 * @param onShard whether the only shard folds the first window
 */
public record Plan(
    SearchRequest original,
    FoldOptions options,
    Scheme scheme,
    Set<String> dates,
    String reason,
    int shards,
    int most,
    boolean whole,
    boolean onShard,
    TaskId task
) {
    /** The number of a document's last change; with it an order is total within a shard. */
    static final String SEQ_NO = "_seq_no";
    /** The format of dates as ISO 8601. */
    public static final String ISO_DATE = "strict_date_time";
    private static final int USUAL_SIZE = 10, MOST_TIED = 1000;

    /** Returns a plan to return the engine's own page. */
    public static Plan unfolded(
        SearchRequest original, FoldOptions options, String scheme, String reason, TaskId task
    ) {
        Scheme none = scheme.isEmpty() ? null : new Scheme(scheme, "", 0, 0, 0, 0, 0, 0, "");
        return new Plan(original, options, none, Set.of(), reason, 0, 0, true, false, task);
    }

    /** Returns whether the hits can be folded. */
    public boolean folds() {
        return reason.isEmpty();
    }

    /** Returns whether ties of the order are broken: one shard has an order of its own. */
    public boolean breaksTies() {
        return shards > 1;
    }

    /** Returns the same plan, with hits read completely. */
    Plan completely() {
        return new Plan(original, options, scheme, dates, reason, shards, most, true, false, task);
    }

    /** Returns the same plan, with all windows folded here. */
    Plan here() {
        return new Plan(original, options, scheme, dates, reason, shards, most, whole, false, task);
    }

    /** Returns the most hits that are read; one more may be requested. */
    int cap() {
        return Math.max(1, Math.min(options.maxWindow(), most - 1));
    }

    /** Returns how many hits to request until one differs from the first. */
    int mostTied() {
        return Math.max(1, Math.min(MOST_TIED, most - 1));
    }

    SearchSourceBuilder source() {
        return original.source();
    }

    /** Returns how many groups come before the page. */
    public int from() {
        return Math.max(0, source().from());
    }

    int size() {
        return source().size() < 0 ? USUAL_SIZE : source().size();
    }

    /** Returns how many groups fill the page, and those before it. */
    public int needed() {
        return from() + size();
    }

    /** Returns how many hits to request first. */
    int firstSize() {
        long blocks = (needed() + (long) options.window() - 1) / options.window();
        return (int) Math.min(blocks * options.window(), cap());
    }

    /** Returns the fields that folding reads of every hit, but for supershingles. */
    List<String> fields() {
        return fields(scheme, options);
    }

    /** Returns the fields that folding by a scheme reads of every hit, but for supershingles. */
    public static List<String> fields(Scheme scheme, FoldOptions options) {
        Set<String> fields = new LinkedHashSet<>(List.of(scheme.field() + ".digest", scheme.field() + ".signature"));
        options.policies().stream().map(Policy::field).filter(name -> !name.isEmpty()).forEach(fields::add);
        options.scopes().stream().map(FoldOptions.Scope::field).forEach(fields::add);
        return new ArrayList<>(fields);
    }

    /** Returns the format in which the doc values of a field are read; null for that of its mapping. */
    String format(String field) {
        return dates.contains(field) ? ISO_DATE : null;
    }

    String digest() {
        return scheme.field() + ".digest";
    }

    String supershingles() {
        return scheme.field() + ".supershingles";
    }

    boolean needsSupershingles() {
        return new Matcher(scheme, options).needsSupershingles();
    }

    /** Returns whether the request itself returns the doc values of a field. */
    boolean wantsDocValues(String field) {
        return matches(source().docValueFields(), field);
    }

    /** Returns whether the request itself returns a field. */
    boolean wants(String field) {
        return wantsDocValues(field) || matches(source().fetchFields(), field) || computes(source(), field);
    }

    /**
     * Returns what gives a field that folding reads another form, where each hit comes with all that the request
     * returns; null if nothing does.
     */
    public static String otherForm(SearchSourceBuilder source, List<String> read, Set<String> dates) {
        List<FieldAndFormat> shown = new ArrayList<>();
        shown.addAll(source.docValueFields() == null ? List.of() : source.docValueFields());
        shown.addAll(source.fetchFields() == null ? List.of() : source.fetchFields());
        for (String name : read) {
            boolean own = dates.contains(name);
            if (shown.stream().anyMatch(one -> (own || one.format != null) && Regex.simpleMatch(one.field, name))) {
                return "a format of [" + name + "], which folding reads, where hits come whole";
            }
            if (computes(source, name)) {
                return "a script field [" + name + "], the name of a field that folding reads";
            }
        }
        return null;
    }

    private static boolean computes(SearchSourceBuilder source, String name) {
        return source.scriptFields() != null
            && source.scriptFields().stream().anyMatch(one -> one.fieldName().equals(name));
    }

    private static boolean matches(List<FieldAndFormat> wanted, String field) {
        return wanted != null && wanted.stream().anyMatch(one -> Regex.simpleMatch(one.field, field));
    }
}
