package org.shinglefold.page;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.core.action.ActionListener;
import org.opensearch.index.seqno.SequenceNumbers;
import org.opensearch.search.SearchHit;
import org.opensearch.transport.client.Client;

/** Turns the answer to a window into a folded page, by further searches where it takes them; never waits. */
public final class Folder {
    private final Client client;
    private final ActionListener<SearchResponse> listener;
    private Reading reading;

    private record Key(String index, long number, String digest) {}

    public Folder(Client client, Plan plan, ActionListener<SearchResponse> listener) {
        this.client = client;
        this.listener = listener;
        reading = new Reading(plan);
    }

    /** Folds the hits of an answer. */
    public void fold(SearchResponse answer) {
        if (!plan().folds()) {
            guarded(() -> listener.onResponse(Page.unfolded(answer, plan(), plan().reason())));
            return;
        }
        guarded(() -> step(answer));
    }

    private Plan plan() {
        return reading.plan();
    }

    private void step(SearchResponse answer) {
        reading.take(answer);
        if (reading.stoppedBy() == null) {
            search(reading.next(), this::step);
        } else if (plan().whole()) {
            Page page = new Page(reading);
            Map<Integer, SearchHit> found = new HashMap<>();
            page.places().forEach(place -> found.put(place, reading.hits()[place]));
            listener.onResponse(page.answer(found));
        } else {
            fetch(new Page(reading));
        }
    }

    private void fetch(Page page) {
        List<Integer> places = page.places();
        if (places.isEmpty()) {
            listener.onResponse(page.answer(Map.of()));
            return;
        }
        Map<Integer, Key> keys = new HashMap<>();
        places.forEach(place -> keys.put(place, windowKey(reading.hits()[place])));
        Set<Key> wanted = new HashSet<>(keys.values());
        if (wanted.size() < keys.size() || keys.values().stream().anyMatch(key -> key.number < 0)) {
            readCompletely();
            return;
        }
        Set<String> digests = new HashSet<>();
        wanted.forEach(key -> digests.add(key.digest));
        List<Long> numbers = wanted.stream().map(Key::number).distinct().toList();
        int size = wanted.size() * Math.max(1, plan().shards()) + 1;
        SearchRequest request = Bodies.page(plan(), numbers, digests.contains(null) ? Set.of() : digests, size);
        search(request, answer -> show(page, keys, answer, size));
    }

    private void show(Page page, Map<Integer, Key> keys, SearchResponse answer, int size) {
        Map<Key, SearchHit> fetched = new HashMap<>();
        boolean unique = answer.getHits().getHits().length < size;
        for (SearchHit hit : answer.getHits().getHits()) {
            Key key = new Key(hit.getIndex(), hit.getSeqNo(), digest(hit));
            unique = fetched.put(key, hit) == null && unique;
        }
        Map<Integer, SearchHit> found = new HashMap<>();
        keys.forEach((place, key) -> found.put(place, fetched.get(key)));
        if (!unique || found.values().stream().anyMatch(Objects::isNull)) {
            // Documents changed meanwhile, or two shards have equal ones.
            readCompletely();
            return;
        }
        reading.partial().note(answer, 0, null);
        if (!Boolean.TRUE.equals(plan().source().seqNoAndPrimaryTerm())) {
            found.values().forEach(hit -> {
                hit.setSeqNo(SequenceNumbers.UNASSIGNED_SEQ_NO);
                hit.setPrimaryTerm(SequenceNumbers.UNASSIGNED_PRIMARY_TERM);
            });
        }
        listener.onResponse(page.answer(found));
    }

    private Key windowKey(SearchHit hit) {
        List<Object> number = Reading.row(hit).values(Plan.SEQ_NO);
        return new Key(hit.getIndex(), number.size() == 1 ? ((Number) number.get(0)).longValue() : -1, digest(hit));
    }

    private String digest(SearchHit hit) {
        List<Object> found = new ArrayList<>(Reading.row(hit).values(plan().digest()));
        return found.isEmpty() ? null : String.valueOf(found.get(0));
    }

    /** Begins again with hits that come with everything, so that none needs to be found again. */
    private void readCompletely() {
        reading = new Reading(plan().completely());
        search(Bodies.first(plan()).pipeline("_none"), this::step);
    }

    private void search(SearchRequest request, Consumer<SearchResponse> then) {
        client.search(request, ActionListener.wrap(answer -> guarded(() -> then.accept(answer)), this::giveUp));
    }

    private void guarded(Runnable work) {
        try {
            work.run();
        } catch (RuntimeException error) {
            giveUp(error);
        }
    }

    /** Answers with the engine's own page: what goes wrong here must not fail the search. */
    private void giveUp(Exception error) {
        if (error instanceof IllegalArgumentException) {
            listener.onFailure(error);
            return;
        }
        String reason = "the hits could not be folded: " + error.getMessage();
        client.search(Bodies.plain(plan()), ActionListener.wrap(
            answer -> listener.onResponse(Page.unfolded(answer, plan(), reason)), listener::onFailure
        ));
    }
}
