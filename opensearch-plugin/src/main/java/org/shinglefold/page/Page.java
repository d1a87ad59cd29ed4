package org.shinglefold.page;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.lucene.search.TotalHits;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.search.DocValueFormat;
import org.opensearch.search.SearchHit;
import org.opensearch.search.SearchHits;
import org.opensearch.search.SearchSortValues;
import org.shinglefold.fold.FoldedWindow.Shown;

/** Builds the answer: the engine's own, with representatives as hits, their members, and our counters. */
final class Page {
    /** Inner hits of the query have the name that the members of groups have. */
    static final class NameTaken extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        NameTaken() {
            super(
                "inner_hits: the members of each group are called \"" + DUPLICATES
                    + "\"; give those of the query another name: \"inner_hits\": {\"name\": …}"
            );
        }
    }

    private static final String DUPLICATES = "duplicates";
    private final Reading reading;

    Page(Reading reading) {
        this.reading = reading;
    }

    /**
     * Returns the answer.
     *
     * @param found the hits of the page as the request returns them, by place
     */
    SearchResponse answer(Map<Integer, SearchHit> found) {
        SearchHit[] hits = reading.folded().shown().stream().map(group -> withMembers(group, found)).toArray(SearchHit[]::new);
        SearchResponse first = reading.first();
        SearchHits own = first.getHits();
        float best = own.getMaxScore();
        if (Float.isNaN(best) && reading.plan().breaksTies() && reading.hits().length > 0
            && Bodies.shownKeys(reading.plan()) == 0) {
            // A sort made the order total, and engines leave max_score out of sorted answers.
            best = reading.hits()[0].getScore();
        }
        return new FoldedResponse(
            first,
            reading.partial().headerOr(first),
            new SearchHits(hits, own.getTotalHits(), best),
            Counters.of(reading)
        );
    }

    /** Returns an answer with each hit as a group of its own, and the reason. */
    static SearchResponse unfolded(SearchResponse answer, Plan plan, String reason) {
        SearchHit[] hits = answer.getHits().getHits();
        for (int at = 0; at < hits.length; at++) {
            TotalHits one = new TotalHits(1, TotalHits.Relation.GREATER_THAN_OR_EQUAL_TO);
            SearchHit[] alone = {copy(hits[at])};
            attach(hits[at], new SearchHits(alone, one, hits[at].getScore()));
        }
        return new FoldedResponse(answer, answer, answer.getHits(), Counters.unfolded(answer, plan, reason));
    }

    private SearchHit withMembers(Shown group, Map<Integer, SearchHit> found) {
        SearchHit[] inner = group.places().stream().map(found::get).map(Page::copy).toArray(SearchHit[]::new);
        TotalHits.Relation relation = reading.isComplete()
            ? TotalHits.Relation.EQUAL_TO : TotalHits.Relation.GREATER_THAN_OR_EQUAL_TO;
        SearchHit hit = found.get(group.places().get(0));
        attach(hit, new SearchHits(inner, new TotalHits(group.size(), relation), group.best()));
        return hit;
    }

    private static void attach(SearchHit hit, SearchHits duplicates) {
        Map<String, SearchHits> inner = new LinkedHashMap<>();
        if (hit.getInnerHits() != null) {
            inner.putAll(hit.getInnerHits());
        }
        if (inner.put(DUPLICATES, duplicates) != null) {
            throw new NameTaken();
        }
        hit.setInnerHits(inner);
    }

    /** Gives hits what the window knows of them, and takes our fields out. */
    void rank(Map<Integer, SearchHit> found) {
        found.forEach((place, hit) -> rank(hit, reading.hits()[place]));
    }

    /** Gives a hit the score and the sort values of the search that ranked it, and takes our fields out. */
    private void rank(SearchHit hit, SearchHit ranked) {
        Plan plan = reading.plan();
        Object[] values = Arrays.copyOf(ranked.getSortValues(), Math.min(Bodies.shownKeys(plan), ranked.getSortValues().length));
        DocValueFormat[] formats = new DocValueFormat[values.length];
        Arrays.fill(formats, DocValueFormat.RAW);
        hit.score(ranked.getScore());
        hit.sortValues(new SearchSortValues(values, formats));
        for (String field : plan.fields()) {
            if (!plan.wants(field)) {
                hit.removeDocumentField(field);
            }
        }
        if (!plan.wants(plan.supershingles())) {
            hit.removeDocumentField(plan.supershingles());
        }
    }

    private static SearchHit copy(SearchHit hit) {
        SearchHit copy = new SearchHit(
            hit.docId(), hit.getId(), new HashMap<>(hit.getDocumentFields()), new HashMap<>(hit.getMetaFields())
        );
        copy.shard(hit.getShard());
        copy.sourceRef(hit.getSourceRef());
        copy.score(hit.getScore());
        copy.version(hit.getVersion());
        copy.setSeqNo(hit.getSeqNo());
        copy.setPrimaryTerm(hit.getPrimaryTerm());
        Object[] values = hit.getSortValues();
        DocValueFormat[] formats = new DocValueFormat[values.length];
        Arrays.fill(formats, DocValueFormat.RAW);
        copy.sortValues(new SearchSortValues(values, formats));
        copy.highlightFields(hit.getHighlightFields());
        copy.explanation(hit.getExplanation());
        copy.matchedQueriesWithScores(hit.getMatchedQueriesAndScores());
        copy.setInnerHits(hit.getInnerHits());
        return copy;
    }
}
