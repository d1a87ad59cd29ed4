package org.shinglefold.page;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.opensearch.OpenSearchException;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.search.ShardSearchFailure;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.index.shard.ShardId;
import org.opensearch.core.rest.RestStatus;
import org.opensearch.index.seqno.SequenceNumbers;
import org.opensearch.search.SearchHit;
import org.opensearch.transport.client.Client;

/** Turns the answer to a window into a folded page, by further searches where it takes them; never waits. */
public final class Folder {
    private final Client client;
    private final ActionListener<SearchResponse> listener;
    private Reading reading;
    private boolean answered, compared;

    /** What identifies a hit: sequence numbers are unique within a shard, but for indices made by {@code _shrink}. */
    private record Key(ShardId shard, long number) {}

    public Folder(Client client, Plan plan, ActionListener<SearchResponse> listener) {
        this.client = client;
        this.listener = listener;
        reading = new Reading(plan);
    }

    /** Folds the hits of an answer. */
    public void fold(SearchResponse answer) {
        proceed(() -> !plan().folds() ? Page.unfolded(answer, plan(), plan().reason())
            : compared(answer, plan().onShard() ? this::take : this::step));
    }

    private Plan plan() {
        return reading.plan();
    }

    /** Returns the page that a shard folded; null if a further search was sent, whose answer leads to it. */
    private SearchResponse take(SearchResponse answer) {
        if (answer.getHits().getHits().length == 0) {
            return step(answer);
        }
        ShardPage page = ShardPage.take(answer);
        if (page == null) {
            return readHere();
        }
        reading.take(answer, page.folded());
        return reading.stoppedBy() == null
            ? search(reading.next(), this::step) : new Page(reading).answer(page.hits());
    }

    /** Returns the page; null if a further search was sent, whose answer leads to it. */
    private SearchResponse step(SearchResponse answer) {
        reading.take(answer);
        if (reading.stoppedBy() == null) {
            return search(reading.next(), this::step);
        }
        Page page = new Page(reading);
        if (!plan().whole()) {
            return fetch(page);
        }
        Map<Integer, SearchHit> found = new HashMap<>();
        reading.folded().places().forEach(place -> found.put(place, reading.hits()[place]));
        page.rank(found);
        return page.answer(found);
    }

    private SearchResponse fetch(Page page) {
        List<Integer> places = reading.folded().places();
        Map<Integer, Key> keys = new HashMap<>();
        places.forEach(place -> keys.put(place, windowKey(reading.hits()[place])));
        List<Key> wanted = keys.values().stream().distinct().toList();
        if (wanted.size() < keys.size() || wanted.stream().anyMatch(key -> key.number < 0)) {
            return readCompletely();
        }
        return fetchNext(page, keys, wanted, new HashMap<>());
    }

    /** Fetches as many of the wanted hits as the indices return at a time, then the others. */
    private SearchResponse fetchNext(
        Page page, Map<Integer, Key> keys, List<Key> wanted, Map<Key, SearchHit> fetched
    ) {
        if (wanted.isEmpty()) {
            return show(page, keys, fetched);
        }
        int shards = Math.max(1, plan().shards());
        int count = Math.min(wanted.size(), Math.max(1, (plan().most() - 1) / shards));
        int size = Math.min(plan().most(), count * shards + 1);
        List<Key> now = wanted.subList(0, count);
        List<Long> numbers = now.stream().map(Key::number).distinct().toList();
        SearchRequest request = Bodies.page(plan(), numbers, digests(keys, new HashSet<>(now)), size);
        return search(request, answer -> {
            reading.partial().note(answer, 0, 0);
            boolean unique = answer.getHits().getHits().length < size;
            for (SearchHit hit : answer.getHits().getHits()) {
                Key key = new Key(hit.getShard().getShardId(), hit.getSeqNo());
                unique = fetched.put(key, hit) == null && unique;
            }
            return unique
                ? fetchNext(page, keys, wanted.subList(count, wanted.size()), fetched) : readCompletely();
        });
    }

    private SearchResponse show(Page page, Map<Integer, Key> keys, Map<Key, SearchHit> fetched) {
        Map<Integer, SearchHit> found = new HashMap<>();
        keys.forEach((place, key) -> found.put(place, fetched.get(key)));
        if (found.values().stream().anyMatch(Objects::isNull)) {
            // Documents changed meanwhile.
            return readCompletely();
        }
        if (!Boolean.TRUE.equals(plan().source().seqNoAndPrimaryTerm())) {
            found.values().forEach(hit -> {
                hit.setSeqNo(SequenceNumbers.UNASSIGNED_SEQ_NO);
                hit.setPrimaryTerm(SequenceNumbers.UNASSIGNED_PRIMARY_TERM);
            });
        }
        page.rank(found);
        return page.answer(found);
    }

    private static Key windowKey(SearchHit hit) {
        List<Object> number = Reading.row(hit).values(Plan.SEQ_NO);
        return new Key(hit.getShard().getShardId(), number.size() == 1 ? ((Number) number.get(0)).longValue() : -1);
    }

    /** Returns the digests of hits; empty if one has none. */
    private Set<String> digests(Map<Integer, Key> keys, Set<Key> now) {
        Set<String> digests = new HashSet<>();
        for (Map.Entry<Integer, Key> one : keys.entrySet()) {
            if (now.contains(one.getValue())) {
                List<Object> found = Reading.row(reading.hits()[one.getKey()]).values(plan().digest());
                if (found.isEmpty()) {
                    return Set.of();
                }
                digests.add(String.valueOf(found.get(0)));
            }
        }
        return digests;
    }

    /** Begins again with hits that come with everything, so that none needs to be found again. */
    private SearchResponse readCompletely() {
        String form = Plan.otherForm(plan().source(), plan().fields(), plan().dates());
        if (form != null) {
            throw new IllegalStateException("sequence numbers did not identify them, and the request has " + form);
        }
        return begin(plan().completely());
    }

    /** Begins again with windows that are folded here. */
    private SearchResponse readHere() {
        return begin(plan().here());
    }

    private SearchResponse begin(Plan plan) {
        reading = new Reading(plan);
        return search(Bodies.first(plan).pipeline("_none"), this::step);
    }

    private SearchResponse search(SearchRequest request, Function<SearchResponse, SearchResponse> then) {
        send(request, answer -> proceed(() -> compared(answer, then)), this::giveUp);
        return null;
    }

    /**
     * Goes on with an answer. Where shards refuse what it asks of its hits, the search itself may ask less of them: its
     * own page is returned if fewer shards fail for it.
     */
    private SearchResponse compared(SearchResponse answer, Function<SearchResponse, SearchResponse> then) {
        Optional<ShardSearchFailure> refusal = Arrays.stream(answer.getShardFailures())
            .filter(one -> one.status() == RestStatus.BAD_REQUEST).findFirst();
        if (compared || refusal.isEmpty()) {
            return then.apply(answer);
        }
        compared = true;
        send(Bodies.plain(plan()), plain -> proceed(() -> plain.getFailedShards() < answer.getFailedShards()
            ? Page.unfolded(plain, plan(), reason(refusal.get().getCause())) : then.apply(answer)), this::giveUp);
        return null;
    }

    private void send(SearchRequest request, Consumer<SearchResponse> then, Consumer<Exception> otherwise) {
        request.setParentTask(plan().task());
        client.search(request, ActionListener.wrap(then::accept, otherwise));
    }

    /** Answers with the page that some work returns; null says that a further search was sent. */
    private void proceed(Supplier<SearchResponse> work) {
        SearchResponse page;
        try {
            page = work.get();
        } catch (RuntimeException error) {
            giveUp(error);
            return;
        }
        if (page != null) {
            answer(page);
        }
    }

    /** Answers once: an error of the listener comes back as one of the last search. */
    private void answer(SearchResponse page) {
        answered = true;
        listener.onResponse(page);
    }

    private void fail(Exception error) {
        if (!answered) {
            answered = true;
            listener.onFailure(error);
        }
    }

    /** Answers where the first search fails: it may be what the shard was told that made it fail. */
    public void recover(Exception error) {
        if (plan().onShard()) {
            proceed(this::readHere);
        } else {
            giveUp(error);
        }
    }

    /** Answers with the engine's own page: what goes wrong here must not fail the search. */
    private void giveUp(Exception error) {
        if (answered || error instanceof Page.NameTaken) {
            fail(error);
            return;
        }
        try {
            send(Bodies.plain(plan()), found -> answer(Page.unfolded(found, plan(), reason(error))), this::fail);
        } catch (RuntimeException worse) {
            fail(worse);
        }
    }

    private static String reason(Throwable error) {
        OpenSearchException root = OpenSearchException.guessRootCauses(error)[0];
        String told = root.getMessage();
        String cause = root.getCause() == null ? told : root.getCause().getMessage();
        return "the hits could not be folded: " + told + (Objects.equals(cause, told) ? "" : ": " + cause);
    }
}
