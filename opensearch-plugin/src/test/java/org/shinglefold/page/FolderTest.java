package org.shinglefold.page;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.lucene.search.TotalHits;
import org.junit.Test;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.search.SearchResponseSections;
import org.opensearch.action.search.ShardSearchFailure;
import org.opensearch.common.document.DocumentField;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.search.SearchHit;
import org.opensearch.search.SearchHits;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.Scheme;
import org.shinglefold.search.OptionsParser;

/** What no server does at a wanted moment: documents that go between two requests, a listener that fails. */
public class FolderTest {
    private static final Scheme SCHEME = new Scheme("sf9-1", "_dedup", 672, 1, 7, 0, 0.6, 0.5, "");

    @Test
    public void documentsThatGoBetweenTwoRequestsAreNoCutHits() {
        Reading reading = new Reading(plan(""));
        reading.take(answer(40, 300));
        assertNull(reading.stoppedBy());
        reading.next();
        reading.take(answer(70, 70));
        assertEquals("end_of_results", reading.stoppedBy());
        assertEquals(Map.of(), reading.partial().lacks());
    }

    @Test
    public void hitsThatAreCountedAndNotReturnedAreCut() {
        Reading reading = new Reading(plan(""));
        reading.take(answer(30, 300));
        assertEquals(Map.of("cut_hits", 10), reading.partial().lacks());
        assertEquals("partial_answer", reading.stoppedBy());
    }

    @Test
    public void aListenerThatFailsIsAnsweredOnce() {
        int[] answers = {0};
        ActionListener<SearchResponse> failing = new ActionListener<>() {
            @Override
            public void onResponse(SearchResponse page) {
                answers[0]++;
                throw new IllegalStateException("the connection is gone");
            }

            @Override
            public void onFailure(Exception error) {
                answers[0]++;
            }
        };
        Folder folder = new Folder(null, plan("no recipe"), failing);
        assertThrows(IllegalStateException.class, () -> folder.fold(answer(3, 3)));
        assertEquals(1, answers[0]);
    }

    private static Plan plan(String reason) {
        FoldOptions options = OptionsParser.parse(Map.of("window", 40));
        SearchRequest request = new SearchRequest("pages").source(new SearchSourceBuilder().size(10));
        return new Plan(request, options, SCHEME, Set.of(), reason, 1, 10_000, true, false, TaskId.EMPTY_TASK_ID);
    }

    private static SearchResponse answer(int count, int total) {
        DocumentField digest = new DocumentField("_dedup.digest", List.of("sf9-1.ru.300.x"));
        SearchHit[] hits = new SearchHit[count];
        for (int at = 0; at < count; at++) {
            hits[at] = new SearchHit(at, String.valueOf(at), Map.of(digest.getName(), digest), Map.of());
            hits[at].score(count - at);
        }
        SearchHits all = new SearchHits(hits, new TotalHits(total, TotalHits.Relation.EQUAL_TO), 1);
        SearchResponseSections parts = new SearchResponseSections(all, null, null, false, null, null, 1);
        return new SearchResponse(
            parts, null, 1, 1, 0, 1, ShardSearchFailure.EMPTY_ARRAY, SearchResponse.Clusters.EMPTY
        );
    }
}
