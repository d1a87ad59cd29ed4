package org.shinglefold.page;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.common.document.DocumentField;
import org.opensearch.search.SearchHit;
import org.shinglefold.fold.FoldedWindow;

/**
 * A page that a shard folded, as it travels to the coordinating node: in a field of its hits.
 *
 * @param folded what folding made of the window
 * @param hits the hits of the page, by their places in the window
 */
public record ShardPage(FoldedWindow folded, Map<Integer, SearchHit> hits) {
    private static final String FIELD = "_dedup_place";

    /** Writes a page into its hits, of which there is at least one. */
    public static void write(SearchHit[] hits, List<Integer> places, FoldedWindow folded) {
        for (int at = 0; at < hits.length; at++) {
            List<Object> values = new ArrayList<>(List.of(places.get(at)));
            if (at == 0) {
                values.add(folded.toValues());
            }
            hits[at].setDocumentField(FIELD, new DocumentField(FIELD, values));
        }
    }

    /** Takes a page out of an answer; null if there is none, or if hits of it are missing. */
    @SuppressWarnings("unchecked")
    static ShardPage take(SearchResponse answer) {
        FoldedWindow folded = null;
        Map<Integer, SearchHit> hits = new HashMap<>();
        for (SearchHit hit : answer.getHits().getHits()) {
            DocumentField found = hit.removeDocumentField(FIELD);
            if (found == null) {
                return null;
            }
            hits.put((int) found.getValues().get(0), hit);
            if (found.getValues().size() > 1) {
                folded = FoldedWindow.ofValues((List<Object>) found.getValues().get(1));
            }
        }
        return folded == null || !hits.keySet().containsAll(folded.places()) ? null : new ShardPage(folded, hits);
    }
}
