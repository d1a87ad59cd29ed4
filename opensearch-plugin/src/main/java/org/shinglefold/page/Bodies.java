package org.shinglefold.page;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.index.query.BoolQueryBuilder;
import org.opensearch.index.query.QueryBuilders;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.fetch.subphase.FieldAndFormat;
import org.opensearch.search.sort.FieldSortBuilder;
import org.opensearch.search.sort.ScoreSortBuilder;
import org.opensearch.search.sort.SortBuilder;
import org.opensearch.search.sort.SortBuilders;
import org.opensearch.search.sort.SortOrder;

/** The requests of a folded search: its windows, and the hits of its page. */
public final class Bodies {
    private static final String NO_PIPELINE = "_none";

    private Bodies() {}

    /** Returns the request that reads the first hits, with totals and aggregations. */
    public static SearchRequest first(Plan plan) {
        SearchSourceBuilder source = copy(plan.source(), true);
        shape(source, plan, plan.firstSize() + (plan.breaksTies() ? 1 : 0));
        return new SearchRequest(plan.original()).source(source);
    }

    /** Returns the request that reads as many hits from the first one on, without aggregations. */
    static SearchRequest again(Plan plan, int size) {
        SearchSourceBuilder source = copy(plan.source(), false);
        shape(source, plan.here(), size);
        // Its own total tells whether hits are missing: since the first request documents may have gone.
        return withSource(plan, source.trackTotalHitsUpTo(size));
    }

    /**
     * Returns the request that fetches hits by their sequence numbers.
     *
     * @param digests the digests of the hits; empty if not all have one
     */
    static SearchRequest page(Plan plan, Collection<Long> numbers, Collection<String> digests, int size) {
        BoolQueryBuilder query = QueryBuilders.boolQuery().filter(QueryBuilders.termsQuery(Plan.SEQ_NO, numbers));
        if (plan.breaksTies() && !digests.isEmpty()) {
            // Other shards have documents with the same numbers; digests exclude nearly all of them.
            query.filter(QueryBuilders.termsQuery(plan.digest(), digests));
        }
        SearchSourceBuilder source = new SearchSourceBuilder().query(query).trackTotalHits(false);
        source.size(size).timeout(plan.source().timeout()).seqNoAndPrimaryTerm(true);
        shownParts(plan.source(), source);
        source.seqNoAndPrimaryTerm(true);
        return withSource(plan, source);
    }

    /** Returns the request itself, past all pipelines that it went through before. */
    static SearchRequest plain(Plan plan) {
        SearchSourceBuilder source = copy(plan.source(), true);
        shownParts(plan.source(), source);
        return withSource(plan, source);
    }

    /** Returns the sort keys whose values hits show: none if the only key is the score, the best first. */
    static int shownKeys(Plan plan) {
        List<SortBuilder<?>> sorts = sorts(plan.source());
        boolean byScore = sorts.size() == 1 && sorts.get(0) instanceof ScoreSortBuilder;
        return byScore && sorts.get(0).order() == SortOrder.DESC ? 0 : sorts.size();
    }

    private static SearchRequest withSource(Plan plan, SearchSourceBuilder source) {
        return new SearchRequest(plan.original()).source(source).pipeline(NO_PIPELINE);
    }

    private static void shownParts(SearchSourceBuilder of, SearchSourceBuilder to) {
        to.fetchSource(of.fetchSource()).version(of.version()).seqNoAndPrimaryTerm(of.seqNoAndPrimaryTerm());
        for (FieldAndFormat field : list(of.docValueFields())) {
            to.docValueField(field.field, field.format);
        }
        for (FieldAndFormat field : list(of.fetchFields())) {
            to.fetchField(field.field, field.format);
        }
        list(of.scriptFields()).forEach(one -> to.scriptField(one.fieldName(), one.script(), one.ignoreFailure()));
    }

    /** Makes a request one for a window: so many hits, in a total order, with the fields that folding reads. */
    private static void shape(SearchSourceBuilder source, Plan plan, int size) {
        source.from(0).size(size);
        order(source, plan);
        if (plan.onShard()) {
            shownParts(plan.source(), source);
            return;
        }
        if (plan.whole()) {
            shownParts(plan.source(), source);
            plan.fields().stream().filter(field -> !plan.wantsDocValues(field))
                .forEach(field -> source.docValueField(field, plan.format(field)));
            if (plan.needsSupershingles() && !plan.wants(plan.supershingles())) {
                source.fetchField(plan.supershingles());
            }
            return;
        }
        if (plan.needsSupershingles()) {
            // They have no doc values.
            source.fetchSource(plan.supershingles(), null);
        } else {
            // Without ids, which engines keep with the sources: that takes a third of the time.
            source.fetchSource(false).storedFields(List.of("_none_"));
        }
        plan.fields().forEach(field -> source.docValueField(field, plan.format(field)));
        source.docValueField(Plan.SEQ_NO);
    }

    private static void order(SearchSourceBuilder source, Plan plan) {
        List<SortBuilder<?>> sorts = new ArrayList<>(sorts(source));
        if (!sorts.isEmpty() && sorts.get(0) instanceof FieldSortBuilder first && isOfDocuments(first)) {
            // Without it servers lose documents that lack the field.
            sorts.set(0, first.missing() == null ? new FieldSortBuilder(first).missing("_last") : first);
        }
        if (plan.breaksTies()) {
            if (sorts.isEmpty()) {
                sorts.add(SortBuilders.scoreSort());
            }
            if (sorts.stream().noneMatch(one -> one instanceof FieldSortBuilder by && by.fieldName().equals(Plan.SEQ_NO))) {
                sorts.add(SortBuilders.fieldSort(Plan.SEQ_NO).order(SortOrder.ASC));
            }
        }
        list(source.sorts()).clear();
        sorts.forEach(source::sort);
    }

    private static boolean isOfDocuments(FieldSortBuilder sort) {
        return !sort.fieldName().startsWith("_");
    }

    private static List<SortBuilder<?>> sorts(SearchSourceBuilder source) {
        return list(source.sorts());
    }

    private static <T> List<T> list(List<T> given) {
        return given == null ? new ArrayList<>() : given;
    }

    /** Copies a request; {@code first} with what describes the whole result. */
    private static SearchSourceBuilder copy(SearchSourceBuilder all, boolean first) {
        SearchSourceBuilder source = new SearchSourceBuilder().from(Math.max(0, all.from()));
        source.query(all.query()).postFilter(all.postFilter()).trackScores(all.trackScores()).profile(all.profile());
        source.timeout(all.timeout()).terminateAfter(all.terminateAfter()).stats(all.stats()).ext(all.ext());
        source.highlighter(all.highlighter()).explain(all.explain()).storedFields(all.storedFields());
        source.includeNamedQueriesScores(all.includeNamedQueriesScore());
        if (all.size() >= 0) {
            source.size(all.size());
        }
        if (all.minScore() != null) {
            source.minScore(all.minScore());
        }
        list(all.indexBoosts()).forEach(one -> source.indexBoost(one.getIndex(), one.getBoost()));
        sorts(all).forEach(source::sort);
        if (!first) {
            return source;
        }
        if (all.trackTotalHitsUpTo() != null) {
            source.trackTotalHitsUpTo(all.trackTotalHitsUpTo());
        }
        if (all.aggregations() != null) {
            all.aggregations().getAggregatorFactories().forEach(source::aggregation);
            all.aggregations().getPipelineAggregatorFactories().forEach(source::aggregation);
        }
        return source.suggest(all.suggest()).verbosePipeline(all.verbosePipeline());
    }
}
