package org.shinglefold.search;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.lucene.search.BooleanClause;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.common.regex.Regex;
import org.opensearch.index.query.QueryBuilder;
import org.opensearch.index.query.QueryBuilderVisitor;
import org.opensearch.index.query.functionscore.FunctionScoreQueryBuilder;
import org.opensearch.index.query.functionscore.RandomScoreFunctionBuilder;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.sort.FieldSortBuilder;
import org.opensearch.search.sort.ScoreSortBuilder;
import org.opensearch.search.sort.SortBuilder;
import org.opensearch.search.suggest.completion.CompletionSuggestionBuilder;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.Policy;
import org.shinglefold.page.Plan;

/** Refuses requests that the plugin would not answer as the Python client does. */
final class RequestCheck {
    /** Queries whose hits change with the size of the window, or whose parts can't be seen. */
    private static final Set<String> REFUSED = Set.of(
        "knn", "neural", "neural_sparse", "hybrid", "wrapper", "template", "percolate"
    );
    private static final Set<String> BY_DATE = Set.of("newest", "oldest");
    private static final String RANDOM = RandomScoreFunctionBuilder.NAME;
    /** The same in a query of a plugin, which does not show its parts otherwise. */
    private static final Pattern WITHIN = Pattern.compile(
        "\"(" + String.join("|", REFUSED) + "|" + RANDOM + ")\"\\s*:\\s*\\{"
    );
    private static final String OF_SERVER = "org.opensearch.index.query.";
    /** Parts of a query that add to its hits. */
    private static final Pattern ADDING = Pattern.compile("\"(_name|inner_hits)\"\\s*:");

    private RequestCheck() {}

    /** Checks the parts of a request that don't depend on the index. */
    static void check(SearchRequest request) {
        SearchSourceBuilder source = request.source();
        refuse(source.collapse() != null, "\"collapse\" in the body");
        refuse(request.scroll() != null, "scroll");
        refuse(source.pointInTimeBuilder() != null, "a point in time");
        refuse(source.searchAfter() != null, "search_after");
        refuse(source.slice() != null, "slice");
        refuse(source.rescores() != null && !source.rescores().isEmpty(), "rescore");
        refuse(source.getDerivedFields() != null && !source.getDerivedFields().isEmpty(), "derived fields");
        refuse(source.getDerivedFieldsObject() != null && !source.getDerivedFieldsObject().isEmpty(), "derived fields");
        boolean completes = source.suggest() != null && source.suggest().getSuggestions().values().stream()
            .anyMatch(CompletionSuggestionBuilder.class::isInstance);
        refuse(completes, "suggestions of completions");
        checkQuery(source.query());
        checkQuery(source.postFilter());
    }

    private static void checkQuery(QueryBuilder query) {
        if (query == null) {
            return;
        }
        query.visit(new QueryBuilderVisitor() {
            @Override
            public void accept(QueryBuilder part) {
                checkPart(part);
            }

            @Override
            public QueryBuilderVisitor getChildVisitor(BooleanClause.Occur occur) {
                return this;
            }
        });
    }

    private static void checkPart(QueryBuilder part) {
        refuseQuery(REFUSED.contains(part.getName()), part.getName());
        if (part instanceof FunctionScoreQueryBuilder scored) {
            for (FunctionScoreQueryBuilder.FilterFunctionBuilder one : scored.filterFunctionBuilders()) {
                refuseQuery(one.getScoreFunction() instanceof RandomScoreFunctionBuilder, RANDOM);
                checkQuery(one.getFilter());
            }
        }
        if (!part.getClass().getName().startsWith(OF_SERVER)) {
            var found = WITHIN.matcher(String.valueOf(part));
            if (found.find()) {
                refuseQuery(true, found.group(1));
            }
        }
    }

    private static void refuseQuery(boolean refused, String name) {
        refuse(refused, "the query \"" + name + "\"");
    }

    /** Checks the sort keys against the mappings. */
    static void checkSort(SearchSourceBuilder source, List<Mapping> mappings) {
        List<SortBuilder<?>> sorts = source.sorts() == null ? List.of() : source.sorts();
        for (int at = 0; at < sorts.size(); at++) {
            if (sorts.get(at) instanceof ScoreSortBuilder) {
                continue;
            }
            boolean plain = sorts.get(at) instanceof FieldSortBuilder by && by.getNestedSort() == null
                && !by.fieldName().equals("_doc") && !by.fieldName().equals("_shard_doc")
                && by.getNumericType() == null;
            refuse(!plain, "this sort: " + String.valueOf(sorts.get(at)).replaceAll("\\s+", ""));
            String name = ((FieldSortBuilder) sorts.get(at)).fieldName();
            boolean exact = name.startsWith("_") || mappings.stream().allMatch(one -> one.sortsExactly(name));
            refuse(at == 0 && !exact, "a sort by [" + name + "], by which servers lose hits");
        }
    }

    /**
     * Refuses fields of policies and scopes that no index has, or whose values no hit returns.
     *
     * @param searched the names of the indices in the request
     */
    static void checkFields(FoldOptions options, String searched, List<Mapping> mappings) {
        // The order of the Python client.
        dateFields(options).distinct().sorted().forEach(name -> checkDates(name, mappings));
        List<String> names = Stream.concat(
            options.scopes().stream().map(FoldOptions.Scope::field), options.policies().stream().map(Policy::field)
        ).filter(name -> !name.isEmpty()).distinct().sorted().toList();
        for (String name : names) {
            if (mappings.stream().noneMatch(one -> one.mayHave(name))) {
                throw new IllegalArgumentException(
                    "unknown field (in ext.dedup, index '" + searched + "') '" + name + "'; name one that is mapped"
                );
            }
        }
        names.forEach(name -> checkValues(name, mappings));
    }

    /** Refuses a field whose values no hit returns; one index of several may lack it, or have an object instead. */
    private static void checkValues(String name, List<Mapping> mappings) {
        List<Mapping> lacking = mappings.stream().filter(one -> !one.valueless(name).isEmpty()).toList();
        Mapping wrong = lacking.stream().filter(one -> !Mapping.ABSENT.contains(one.valueless(name))).findFirst()
            .orElse(lacking.size() < mappings.size() || lacking.isEmpty() ? null : lacking.get(0));
        if (wrong != null) {
            String why = wrong.valueless(name), better = why.startsWith("mapped") ? wrong.keywordOf(name) : null;
            throw new IllegalArgumentException(
                "index '" + wrong.index() + "': '" + name + "' is " + why + ", so hits do not return its values; name "
                    + (better == null ? "a keyword, a number or a date" : "'" + better + "'")
                    + " for the scope or policy"
            );
        }
    }

    /** Returns the fields whose dates folding reads as ISO 8601, as an index has another format. */
    static Set<String> isoDates(FoldOptions options, List<Mapping> mappings) {
        Set<String> found = new HashSet<>();
        dateFields(options).filter(name -> mappings.stream().anyMatch(one -> one.isUnreadableDate(name)))
            .forEach(found::add);
        for (String name : found) {
            if (mappings.stream().anyMatch(one -> one.isNoDate(name))) {
                // Another type takes no format of dates.
                throw new IllegalArgumentException(
                    "ext.dedup: [" + name + "] is a date with a format in one index of this search and no date in "
                        + "another, so that its dates can't be compared; map it alike, or search the indices one by one"
                );
            }
            if (writtenFields(options).anyMatch(name::equals)) {
                throw new IllegalArgumentException(
                    "ext.dedup: [" + name + "] is a date with a format: a search reads it either by its time (newest, "
                        + "oldest, within) or as it is written (prefer, scope). Leave one out, or map a multi-field of "
                        + "the same format for it"
                );
            }
        }
        return found;
    }

    /** Returns the fields whose values are compared as they are written. */
    private static Stream<String> writtenFields(FoldOptions options) {
        return Stream.concat(
            options.scopes().stream().filter(one -> one.within() == null).map(FoldOptions.Scope::field),
            options.policies().stream().filter(one -> !BY_DATE.contains(one.name())).map(Policy::field)
        );
    }

    /** Returns the fields whose values are read as dates. */
    private static Stream<String> dateFields(FoldOptions options) {
        return Stream.concat(
            options.scopes().stream().filter(one -> one.within() != null).map(FoldOptions.Scope::field),
            options.policies().stream().filter(one -> BY_DATE.contains(one.name())).map(Policy::field)
        );
    }

    /** Refuses a field of a type that has no dates: every hit would count as one without a date. */
    private static void checkDates(String name, List<Mapping> mappings) {
        for (Mapping mapping : mappings) {
            String type = mapping.typeWithoutDates(name);
            if (type != null) {
                throw new IllegalArgumentException(
                    "index '" + mapping.index() + "': '" + name + "' is of type " + type
                        + ", which has no dates; name a date, a number of milliseconds, or a keyword with dates in "
                        + "ISO 8601"
                );
            }
        }
    }

    /** Returns whether only the search itself returns its hits as requested, not a fetch by their numbers. */
    static boolean needsWholeHits(SearchSourceBuilder source) {
        return source.highlighter() != null || Boolean.TRUE.equals(source.explain()) || source.profile()
            || source.storedFields() != null
            || ADDING.matcher(String.valueOf(source.query()) + source.postFilter()).find();
    }

    /** Returns whether a request returns some of these as {@code fields}, which then hide the doc values. */
    static boolean showsFields(SearchSourceBuilder source, List<String> names) {
        return source.fetchFields() != null && source.fetchFields().stream()
            .anyMatch(one -> names.stream().anyMatch(name -> Regex.simpleMatch(one.field, name)));
    }

    /** Refuses other forms of fields that folding reads, where each hit comes with all that the request returns. */
    static void checkForms(SearchSourceBuilder source, List<String> read, Set<String> dates) {
        String form = Plan.otherForm(source, read, dates);
        refuse(form != null, form);
    }

    /** Refuses to read supershingles, which engines keep with the sources, where the request wants no such parts. */
    static void checkSupershingles(SearchSourceBuilder source) {
        refuse(source.storedFields() != null && !source.storedFields().fetchFields(), "min_shared with stored_fields _none_");
    }

    private static void refuse(boolean refused, String what) {
        if (refused) {
            throw OptionsParser.forPython(what);
        }
    }
}
