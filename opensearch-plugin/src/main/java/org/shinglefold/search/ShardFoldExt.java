package org.shinglefold.search;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.common.io.stream.StreamOutput;
import org.opensearch.core.xcontent.XContentBuilder;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.search.SearchExtBuilder;
import org.shinglefold.fold.FoldedWindow;
import org.shinglefold.page.Plan;

/** What a search tells its only shard: to fold the window, and to fetch the page alone. */
final class ShardFoldExt extends SearchExtBuilder {
    static final String NAME = "dedup_shard";
    private final Map<String, Object> options;
    private final String scheme;
    private final int from, needed;
    private final Result result;

    /**
     * What a shard made of its window; it stays there until the page is fetched.
     *
     * @param places the places of the hits that are fetched, in the window
     */
    record Result(FoldedWindow window, List<Integer> places) {}

    private ShardFoldExt(Map<String, Object> options, String scheme, int from, int needed, Result result) {
        this.options = options;
        this.scheme = scheme;
        this.from = from;
        this.needed = needed;
        this.result = result;
    }

    ShardFoldExt(Map<String, Object> options, Plan plan) {
        this(options, plan.scheme().id(), plan.from(), plan.needed(), null);
    }

    ShardFoldExt(StreamInput in) throws IOException {
        this(in.readMap(), in.readString(), in.readVInt(), in.readVInt(), null);
    }

    ShardFoldExt with(Result found) {
        return new ShardFoldExt(options, scheme, from, needed, found);
    }

    /** Refuses the section in requests of users: our own are not parsed. */
    static ShardFoldExt fromXContent(XContentParser parser) {
        throw new IllegalArgumentException("ext." + NAME + ": only the plugin writes it; use ext." + DedupExt.NAME);
    }

    Map<String, Object> options() {
        return options;
    }

    String scheme() {
        return scheme;
    }

    /** Returns what the shard found; null before. */
    Result result() {
        return result;
    }

    /** Returns how many groups come before the page. */
    int from() {
        return from;
    }

    /** Returns how many groups fill the page, and those before it. */
    int needed() {
        return needed;
    }

    @Override
    public String getWriteableName() {
        return NAME;
    }

    @Override
    public void writeTo(StreamOutput out) throws IOException {
        out.writeMap(options);
        out.writeString(scheme);
        out.writeVInt(from);
        out.writeVInt(needed);
    }

    @Override
    public XContentBuilder toXContent(XContentBuilder builder, Params params) throws IOException {
        return builder.field(NAME, options);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ShardFoldExt ext && options.equals(ext.options) && scheme.equals(ext.scheme)
            && from == ext.from && needed == ext.needed;
    }

    @Override
    public int hashCode() {
        return Objects.hash(options, scheme, from, needed);
    }
}
