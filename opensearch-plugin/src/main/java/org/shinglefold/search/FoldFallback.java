package org.shinglefold.search;

import org.opensearch.action.ActionRequest;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.action.support.ActionFilter;
import org.opensearch.action.support.ActionFilterChain;
import org.opensearch.core.action.ActionListener;
import org.opensearch.core.action.ActionResponse;
import org.opensearch.search.SearchExtBuilder;
import org.opensearch.tasks.Task;
import org.opensearch.transport.client.Client;
import org.shinglefold.page.Folder;

/** Returns the engine's own page where a search fails with the window and would not without. */
final class FoldFallback implements ActionFilter {
    private Client client;

    void begin(Client ofNode) {
        client = ofNode;
    }

    @Override
    public int order() {
        return 0;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <Q extends ActionRequest, A extends ActionResponse> void apply(
        Task task, String action, Q request, ActionListener<A> listener, ActionFilterChain<Q, A> chain
    ) {
        DedupExt ext = request instanceof SearchRequest search ? ext(search) : null;
        if (ext == null) {
            chain.proceed(task, action, request, listener);
            return;
        }
        // The response processor sees no failures of the search itself.
        ActionListener<SearchResponse> answers = (ActionListener<SearchResponse>) listener;
        chain.proceed(task, action, request, ActionListener.wrap(answer -> {
            answers.onResponse(ext.withCounters((SearchResponse) answer));
        }, error -> {
            if (ext.plan() == null || !ext.plan().folds()) {
                listener.onFailure(error);
            } else {
                new Folder(client, ext.plan(), answers).recover(error);
            }
        }));
    }

    private static DedupExt ext(SearchRequest request) {
        if (request.source() != null) {
            for (SearchExtBuilder one : request.source().ext()) {
                if (one instanceof DedupExt ext) {
                    return ext;
                }
            }
        }
        return null;
    }
}
