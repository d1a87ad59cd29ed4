package org.shinglefold.search;

import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.search.SearchExtBuilder;
import org.shinglefold.page.FoldedResponse;
import org.shinglefold.page.Plan;

/** The section {@code ext.dedup} of a search: an object of options, or a flag that is short for {@code fold}. */
final class DedupExt extends SearchExtBuilder {
    static final String NAME = "dedup";
    private final Map<String, Object> options;
    /** How the search is answered; null before that is known. */
    private volatile Plan plan;
    /** The folded page; null before there is one. */
    private volatile SearchResponse page;

    DedupExt(Map<String, Object> options) {
        this.options = options;
    }

    DedupExt(StreamInput in) throws IOException {
        this(in.readMap());
    }

    static DedupExt fromXContent(XContentParser parser) throws IOException {
        // The request processor checks options: an error here would fail all searches of an msearch.
        return switch (parser.currentToken()) {
            case START_OBJECT -> new DedupExt(parser.map());
            case VALUE_BOOLEAN -> new DedupExt(Map.of("fold", parser.booleanValue()));
            default -> throw new IllegalArgumentException("ext.dedup: expected an object of options");
        };
    }

    Map<String, Object> options() {
        return options;
    }

    Plan plan() {
        return plan;
    }

    void answerBy(Plan chosen) {
        plan = chosen;
    }

    void answered(SearchResponse folded) {
        page = folded;
    }

    /** Returns an answer with the counters of the folded page, which processors of the user leave out. */
    SearchResponse withCounters(SearchResponse answer) {
        return FoldedResponse.withCounters(answer, page);
    }

    @Override
    public String getWriteableName() {
        return NAME;
    }

    @Override
    public void writeTo(StreamOutput out) throws IOException {
        out.writeMap(options);
    }

    @Override
    public XContentBuilder toXContent(XContentBuilder builder, Params params) throws IOException {
        return builder.field(NAME, options);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DedupExt ext && options.equals(ext.options);
    }

    @Override
    public int hashCode() {
        return Objects.hash(options);
    }
}
