package org.shinglefold.page;

import java.util.Map;
import java.util.TreeMap;
import org.apache.lucene.search.TotalHits;
import org.opensearch.action.search.SearchResponse;

/** What the answers to the requests of one search lack: the greatest of each number. */
final class Partial {
    private static final String CUT = "cut_hits";
    private final Map<String, Object> lacks = new TreeMap<>();
    private SearchResponse header;

    boolean isEmpty() {
        return lacks.isEmpty();
    }

    Map<String, Object> lacks() {
        return lacks;
    }

    /** Returns the answer whose header tells what is missing; the given one if nothing is. */
    SearchResponse headerOr(SearchResponse complete) {
        return header == null ? complete : header;
    }

    /**
     * Records what an answer lacks and returns whether it is partial.
     *
     * @param asked how many hits were requested; 0 if the answer need not have all
     * @param read how many there were
     */
    boolean note(SearchResponse answer, int asked, int read) {
        Map<String, Object> found = missing(answer);
        TotalHits counted = answer.getHits().getTotalHits();
        if (found.isEmpty() && counted != null) {
            // A processor removed them, or the server lost them.
            long cut = Math.min(asked, counted.value()) - read;
            if (cut > 0) {
                found.put(CUT, (int) cut);
            }
        }
        found.forEach((name, value) -> lacks.merge(name, value, Partial::greater));
        if (!found.isEmpty()) {
            header = answer;
        }
        return !found.isEmpty() || lacks.containsKey(CUT);
    }

    static Map<String, Object> missing(SearchResponse answer) {
        Map<String, Object> found = new TreeMap<>();
        int lost = Math.max(answer.getFailedShards(), answer.getTotalShards() - answer.getSuccessfulShards());
        if (lost > 0) {
            found.put("failed_shards", lost);
        }
        if (answer.isTimedOut()) {
            found.put("timed_out", true);
        }
        if (Boolean.TRUE.equals(answer.isTerminatedEarly())) {
            found.put("terminated_early", true);
        }
        if (answer.getClusters() != null && answer.getClusters().getSkipped() > 0) {
            found.put("skipped_clusters", answer.getClusters().getSkipped());
        }
        return found;
    }

    private static Object greater(Object one, Object other) {
        return one instanceof Integer a && other instanceof Integer b ? Math.max(a, b) : other;
    }
}
