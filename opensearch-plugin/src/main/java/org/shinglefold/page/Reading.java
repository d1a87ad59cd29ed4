package org.shinglefold.page;

import java.util.Arrays;
import java.util.List;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.common.document.DocumentField;
import org.opensearch.common.xcontent.support.XContentMapValues;
import org.opensearch.search.SearchHit;
import org.shinglefold.fold.FoldedWindow;
import org.shinglefold.fold.LeaderFolding;
import org.shinglefold.fold.Row;

/**
 * Reads windows of hits and folds them, until the page is full, the results end or the cap is reached.
 *
 * <p>Each longer window is read from its start, so that all hits of a page are of one answer.
 */
final class Reading {
    private final Plan plan;
    private final Partial partial = new Partial();
    private SearchResponse first;
    private SearchHit[] hits = {};
    private FoldedWindow folded;
    /** How many hits are requested at a time, and how many complete ones were read. */
    private int size, taken;
    private int asked;
    private boolean ended, broken, capped;

    Reading(Plan plan) {
        this.plan = plan;
        size = plan.firstSize();
        asked = plan.breaksTies() ? size + 1 : size;
    }

    Plan plan() {
        return plan;
    }

    Partial partial() {
        return partial;
    }

    /** Returns the first answer; it has totals and aggregations. */
    SearchResponse first() {
        return first;
    }

    /** Returns the hits of the last window, in rank order. */
    SearchHit[] hits() {
        return hits;
    }

    /** Returns what folding made of the last window. */
    FoldedWindow folded() {
        return folded;
    }

    /** Returns whether all hits were read, and no answer lacked anything. */
    boolean isComplete() {
        return ended && partial.isEmpty();
    }

    /** Returns why reading stops; null if there is more to read. */
    String stoppedBy() {
        if (folded.groups() >= plan.needed()) {
            return "page_full";
        }
        if (ended) {
            return "end_of_results";
        }
        if (broken) {
            return "partial_answer";
        }
        return capped || folded.counts().hits() >= plan.cap() ? "window_cap" : null;
    }

    /** Takes the answer to the last request. */
    void take(SearchResponse answer) {
        boolean opening = first == null;
        first = opening ? answer : first;
        hits = answer.getHits().getHits();
        note(answer, hits.length);
        LeaderFolding folding = new LeaderFolding(plan.scheme(), plan.options());
        if (opening && !plan.breaksTies()) {
            foldBlocks(folding, hits.length, true, false);
            grow(hits.length);
        } else {
            takeRun(folding);
        }
        folded = FoldedWindow.of(
            folding, place -> hits[place].getScore(), plan.from(), plan.needed(), plan.options().members()
        );
    }

    /** Takes the first answer, whose window the shard folded. */
    void take(SearchResponse answer, FoldedWindow window) {
        first = answer;
        folded = window;
        note(answer, window.counts().hits());
        grow(window.counts().hits());
    }

    private void note(SearchResponse answer, int read) {
        boolean lacking = partial.note(answer, asked, read);
        ended = read < asked && !lacking;
        broken = read < asked && lacking;
    }

    private void grow(int read) {
        size = Math.min(Math.max(2 * read, plan.firstSize()), plan.cap());
    }

    /** Returns the request for a longer window. */
    SearchRequest next() {
        int most = taken == 0 ? Math.min(size, plan.mostTied()) : Math.min(size, Math.max(plan.cap() - taken, 0));
        size = Math.max(1, most);
        asked = taken + size + 1;
        return Bodies.again(plan, asked);
    }

    /** Folds the complete blocks; trailing hits that may have equals among the next ones are left out. */
    private void takeRun(LeaderFolding folding) {
        int before = taken;
        taken = withoutOpenTie(hits.length, taken + size, before);
        if (taken == before && hits.length > before) {
            // All requested hits have equal sort values: the first time more are requested.
            capped = before > 0 || size >= plan.mostTied();
        }
        capped = capped || taken >= plan.cap();
        foldBlocks(folding, taken, ended || broken || capped, true);
        size = 2 * size;
    }

    /** Folds blocks of {@code window} hits; with {@code ties}, hits of equal sort values stay in one block. */
    private void foldBlocks(LeaderFolding folding, int count, boolean last, boolean ties) {
        int window = plan.options().window();
        int begin = 0;
        while (begin < count && (last || hits.length - begin > window)) {
            int end = blockEnd(begin, ties);
            if (end > count) {
                if (!last) {
                    return;
                }
                end = count;
            }
            folding.add(Arrays.stream(hits, begin, end).map(this::rowWithSource).toList());
            begin = end;
        }
    }

    private int blockEnd(int begin, boolean ties) {
        int end = Math.min(hits.length, begin + plan.options().window());
        if (!ties) {
            return end;
        }
        int found = withoutOpenTie(hits.length, end, begin);
        while (found == begin && end < hits.length) {
            end++;
            found = withoutOpenTie(hits.length, end, begin);
        }
        return found == begin ? hits.length : found;
    }

    /** Returns where to cut hits so that equal ones stay together: at {@code most} or before, not below {@code least}. */
    private int withoutOpenTie(int length, int most, int least) {
        if (length <= most) {
            return length;
        }
        int end = most;
        while (plan.breaksTies() && end > least && Arrays.equals(sort(end), sort(end - 1))) {
            end--;
        }
        return end;
    }

    private Object[] sort(int place) {
        return hits[place].getSortValues();
    }

    /** Returns the doc values of a hit, and its supershingles, which have none. */
    private Row rowWithSource(SearchHit hit) {
        Row values = row(hit);
        if (plan.whole() || !plan.needsSupershingles()) {
            return values;
        }
        List<Object> words = hit.hasSource()
            ? XContentMapValues.extractRawValues(plan.supershingles(), hit.getSourceAsMap()) : List.of();
        return name -> name.equals(plan.supershingles()) ? words : values.values(name);
    }

    /** Returns the doc values of a hit. */
    static Row row(SearchHit hit) {
        return name -> {
            DocumentField found = hit.field(name);
            return found == null ? List.of() : found.getValues();
        };
    }
}
