package org.shinglefold.search;

import static org.junit.Assert.assertEquals;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.common.io.stream.BytesStreamOutput;
import org.opensearch.core.common.io.stream.StreamInput;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.shinglefold.fold.FoldedWindow;
import org.shinglefold.fold.LeaderFolding;
import org.shinglefold.fold.Row;
import org.shinglefold.fold.Scheme;
import org.shinglefold.page.Plan;

/** What two nodes send to each other of a page that a shard folds. */
public class ShardFoldExtTest {
    private static final Scheme SCHEME = new Scheme("sf9-1", "_dedup", 672, 1, 7, 0, 0.6, 0.5, "");
    private static final Map<String, Object> OPTIONS = Map.of(
        "members", 1, "scope", List.of("host", Map.of("field", "published", "within", "3d"))
    );

    @Test
    public void theOrderReadsAsItWasWritten() throws Exception {
        SearchRequest request = new SearchRequest("pages").source(new SearchSourceBuilder().from(20).size(10));
        Plan plan = new Plan(
            request, OptionsParser.parse(OPTIONS), SCHEME, Set.of(), "", 1, 10_000, false, true, TaskId.EMPTY_TASK_ID
        );
        ShardFoldExt sent = new ShardFoldExt(OPTIONS, plan);
        try (BytesStreamOutput out = new BytesStreamOutput()) {
            sent.writeTo(out);
            ShardFoldExt read = new ShardFoldExt(out.bytes().streamInput());
            assertEquals(sent, read);
            assertEquals(List.of("sf9-1", 20, 30), List.of(read.scheme(), read.from(), read.needed()));
            assertEquals(OptionsParser.parse(OPTIONS), OptionsParser.parse(read.options()));
        }
    }

    @Test
    @SuppressWarnings("unchecked")
    public void theFoldedWindowReadsAsItWasWritten() throws Exception {
        LeaderFolding folding = new LeaderFolding(SCHEME, OptionsParser.parse(Map.of()));
        folding.add(List.of(
            row("sf9-1.ru.300.x"), row("sf9-1.en.300.y"), row("sf9-1.ru.300.x"), row("sf8-2.ru.9.z"), name -> List.of()
        ));
        double[] scores = {2.5, Double.NaN, 3.5, 1, 0};
        FoldedWindow window = FoldedWindow.of(folding, place -> scores[place], 0, 3, 5);
        assertEquals(List.of(0, 2, 1, 3), window.places());
        try (BytesStreamOutput out = new BytesStreamOutput()) {
            out.writeGenericValue(window.toValues());
            StreamInput in = out.bytes().streamInput();
            FoldedWindow read = FoldedWindow.ofValues((List<Object>) in.readGenericValue());
            assertEquals(window.shown(), read.shown());
            assertEquals(window.toValues(), read.toValues());
        }
    }

    private static Row row(String digest) {
        return name -> name.equals("_dedup.digest") ? List.of(digest) : List.of();
    }
}
