package org.shinglefold.search;

import org.opensearch.action.search.SearchRequest;
import org.opensearch.action.search.SearchResponse;
import org.opensearch.core.action.ActionListener;
import org.opensearch.search.pipeline.AbstractProcessor;
import org.opensearch.search.pipeline.PipelineProcessingContext;
import org.opensearch.search.pipeline.SearchResponseProcessor;
import org.opensearch.search.pipeline.SystemGeneratedProcessor;
import org.opensearch.transport.client.Client;
import org.shinglefold.page.Folder;
import org.shinglefold.page.Plan;

/** Folds the hits of the window that the request processor asked for. */
final class FoldResponseProcessor extends AbstractProcessor
    implements SearchResponseProcessor, SystemGeneratedProcessor {
    private final Client client;

    FoldResponseProcessor(String tag, String description, boolean ignoreFailure, Client client) {
        super(tag, description, ignoreFailure);
        this.client = client;
    }

    @Override
    public String getType() {
        return DedupExt.NAME;
    }

    /** Processors of the user get the folded page: of a window they would change hits that are not shown. */
    @Override
    public ExecutionStage getExecutionStage() {
        return ExecutionStage.PRE_USER_DEFINED;
    }

    @Override
    public SearchResponse processResponse(SearchRequest request, SearchResponse response) {
        throw new UnsupportedOperationException("hits are folded asynchronously");
    }

    @Override
    public void processResponseAsync(
        SearchRequest request,
        SearchResponse response,
        PipelineProcessingContext context,
        ActionListener<SearchResponse> listener
    ) {
        if (!(context.getAttribute(FoldRequestProcessor.PLAN) instanceof Plan plan)) {
            listener.onResponse(response);
            return;
        }
        // A second processor of the same search finds nothing left to do.
        context.getAttributes().remove(FoldRequestProcessor.PLAN);
        DedupExt ext = context.getAttribute(FoldRequestProcessor.EXT) instanceof DedupExt found ? found : null;
        new Folder(client, plan, ext == null ? listener : ActionListener.wrap(page -> {
            ext.answered(page);
            listener.onResponse(page);
        }, listener::onFailure)).fold(response);
    }
}
