package org.shinglefold.page;

import java.io.IOException;
import java.util.Map;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.search.SearchResponseSections;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.search.SearchHits;
import org.opensearch.search.profile.SearchProfileShardResults;

/** An answer with other hits, and our counters under {@code dedup}. */
public final class FoldedResponse extends SearchResponse {
    private final Map<String, Object> dedup;

    /**
     * Makes an answer.
     *
     * @param first the answer whose totals, aggregations and suggestions are shown
     * @param header the answer that tells what is missing
     */
    FoldedResponse(SearchResponse first, SearchResponse header, SearchHits hits, Map<String, Object> dedup) {
        super(
            new SearchResponseSections(
                hits,
                first.getAggregations(),
                first.getSuggest(),
                header.isTimedOut(),
                header.isTerminatedEarly(),
                first.getProfileResults().isEmpty() ? null : new SearchProfileShardResults(first.getProfileResults()),
                first.getNumReducePhases(),
                first.getInternalResponse().getSearchExtBuilders(),
                first.getInternalResponse().getProcessorResult()
            ),
            first.getScrollId(),
            header.getTotalShards(),
            header.getSuccessfulShards(),
            header.getSkippedShards(),
            first.getTook().millis(),
            first.getPhaseTook(),
            header.getShardFailures(),
            first.getClusters(),
            first.pointInTimeId()
        );
        this.dedup = dedup;
    }

    /** Returns an answer with the counters of a page that it was made of; as it is where it has some, or there are none. */
    public static SearchResponse withCounters(SearchResponse answer, SearchResponse page) {
        return !(answer instanceof FoldedResponse) && page instanceof FoldedResponse folded
            ? new FoldedResponse(answer, answer, answer.getHits(), folded.dedup) : answer;
    }

    /** Returns the counters. */
    Map<String, Object> dedup() {
        return dedup;
    }

    @Override
    public XContentBuilder innerToXContent(XContentBuilder builder, Params params) throws IOException {
        return super.innerToXContent(builder, params).field("dedup", dedup);
    }
}
