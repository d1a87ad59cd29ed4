package org.shinglefold.page;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.lucene.search.TotalHits;
import org.opensearch.action.search.SearchResponse;
import org.shinglefold.fold.Counts;

/** The counters of an answer. */
final class Counters {
    private static final String METHOD =
        "groups seen + hits not read × share of hits that begin a group in the second half of the window";

    private Counters() {}

    static Map<String, Object> of(Reading reading) {
        Counts counts = reading.folded().counts();
        Map<String, Object> dedup = new LinkedHashMap<>();
        dedup.put("scheme", reading.plan().scheme().id());
        dedup.put("mode", "server");
        dedup.put("window", counts.hits());
        dedup.put("stopped_by", reading.stoppedBy());
        dedup.put("order", reading.plan().breaksTies() ? Plan.SEQ_NO : "engine");
        dedup.put("groups", reading.folded().groups());
        dedup.put("groups_total", groupsTotal(reading));
        dedup.put("folded", counts.hits() - reading.folded().groups());
        dedup.put("repeated", 0);
        dedup.put("unsigned", counts.unsigned());
        dedup.put("unreadable", counts.unreadable());
        dedup.put("other_schemes", counts.otherSchemes());
        dedup.put("languages", counts.languages());
        dedup.put("vanished", 0);
        if (!reading.partial().isEmpty()) {
            dedup.put("partial", reading.partial().lacks());
        }
        return dedup;
    }

    static Map<String, Object> unfolded(SearchResponse answer, Plan plan, String reason) {
        int hits = answer.getHits().getHits().length;
        boolean ended = hits < plan.size();
        Map<String, Object> lacks = Partial.missing(answer);
        Map<String, Object> dedup = new LinkedHashMap<>();
        dedup.put("scheme", plan.scheme() == null ? "" : plan.scheme().id());
        dedup.put("mode", "unfolded");
        dedup.put("mode_reason", reason);
        dedup.put("window", null);
        dedup.put("stopped_by", !ended ? "page_full" : lacks.isEmpty() ? "end_of_results" : "partial_answer");
        dedup.put("order", "engine");
        dedup.put("groups", hits);
        // How many groups there are is unknown: all hits may be near-duplicates.
        dedup.put("groups_total", total(Math.min(1, plan.from() + hits), "gte"));
        dedup.put("folded", 0);
        dedup.put("repeated", 0);
        dedup.put("unsigned", null);
        dedup.put("unreadable", null);
        dedup.put("other_schemes", Map.of());
        dedup.put("languages", Map.of());
        dedup.put("vanished", 0);
        if (!lacks.isEmpty()) {
            dedup.put("partial", lacks);
        }
        return dedup;
    }

    private static Map<String, Object> groupsTotal(Reading reading) {
        TotalHits total = reading.partial().isEmpty() ? reading.first().getHits().getTotalHits() : null;
        int read = reading.folded().counts().hits(), seen = reading.folded().groups();
        boolean exact = total != null && total.relation() == TotalHits.Relation.EQUAL_TO;
        if (reading.isComplete() || exact && total.value() <= read) {
            return total(seen, "eq");
        }
        if (total == null || total.value() <= read || read == 0) {
            return total(seen, "gte");
        }
        double share = (double) reading.folded().late() / (read - read / 2);
        Map<String, Object> estimate = new LinkedHashMap<>();
        estimate.put("value", seen + (long) Math.rint((total.value() - read) * share));
        estimate.put("relation", "estimate");
        estimate.put("method", METHOD);
        estimate.put("window", read);
        estimate.put("of", total(total.value(), exact ? "eq" : "gte"));
        return estimate;
    }

    private static Map<String, Object> total(long value, String relation) {
        Map<String, Object> total = new LinkedHashMap<>();
        total.put("value", value);
        total.put("relation", relation);
        return total;
    }
}
