package org.shinglefold.search;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.opensearch.action.support.ActionFilter;
import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.common.io.stream.NamedWriteableRegistry;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.env.Environment;
import org.opensearch.env.NodeEnvironment;
import org.opensearch.index.IndexModule;
import org.opensearch.plugins.ActionPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.SearchPipelinePlugin;
import org.opensearch.plugins.SearchPlugin;
import org.opensearch.repositories.RepositoriesService;
import org.opensearch.script.ScriptService;
import org.opensearch.search.fetch.FetchSubPhase;
import org.opensearch.search.pipeline.Processor;
import org.opensearch.search.pipeline.SearchPipelineService;
import org.opensearch.search.pipeline.SearchRequestProcessor;
import org.opensearch.search.pipeline.SearchResponseProcessor;
import org.opensearch.search.pipeline.SystemGeneratedProcessor.SystemGeneratedFactory;
import org.opensearch.threadpool.ThreadPool;
import org.opensearch.transport.client.Client;
import org.opensearch.watcher.ResourceWatcherService;

/**
 * Folds near-duplicate hits inside OpenSearch.
 *
 * <p>It registers {@code ext.dedup} of searches, the processors {@code dedup} of search pipelines, and their
 * system-generated twins, which serve every search that has {@code ext.dedup}.
 */
public final class FoldPlugin extends Plugin implements ActionPlugin, SearchPipelinePlugin, SearchPlugin {
    private static final String REQUESTS = "dedup_request_factory", RESPONSES = "dedup_response_factory";
    private final IndexFacts facts = new IndexFacts();
    private final FoldFallback fallback = new FoldFallback();

    @Override
    public Collection<Object> createComponents(
        Client client,
        ClusterService clusterService,
        ThreadPool threadPool,
        ResourceWatcherService resourceWatcherService,
        ScriptService scriptService,
        NamedXContentRegistry xContentRegistry,
        Environment environment,
        NodeEnvironment nodeEnvironment,
        NamedWriteableRegistry namedWriteableRegistry,
        IndexNameExpressionResolver resolver,
        Supplier<RepositoriesService> repositories
    ) {
        facts.begin(clusterService, resolver, threadPool.getThreadContext());
        fallback.begin(client);
        return List.of();
    }

    @Override
    public List<ActionFilter> getActionFilters() {
        return List.of(fallback);
    }

    /** Enables the system-generated processors, unless the settings of the node say otherwise. */
    @Override
    public Settings additionalSettings() {
        String name = SearchPipelineService.ENABLED_SYSTEM_GENERATED_FACTORIES_SETTING.getKey();
        return Settings.builder().putList(name, REQUESTS, RESPONSES).build();
    }

    @Override
    public List<SearchExtSpec<?>> getSearchExts() {
        return List.of(
            new SearchExtSpec<>(DedupExt.NAME, DedupExt::new, DedupExt::fromXContent),
            new SearchExtSpec<>(ShardFoldExt.NAME, ShardFoldExt::new, ShardFoldExt::fromXContent)
        );
    }

    @Override
    public void onIndexModule(IndexModule index) {
        index.addSearchOperationListener(new ShardFolding(facts));
    }

    /** Refuses a search whose {@code ext.dedup} no processor took: it would go unheeded. */
    @Override
    public List<FetchSubPhase> getFetchSubPhases(FetchPhaseConstructionContext context) {
        return List.of(fetch -> {
            if (fetch.getSearchExt(DedupExt.NAME) != null) {
                throw new IllegalArgumentException(
                    "ext.dedup: no processor folds this search; add " + REQUESTS + " and " + RESPONSES + " to "
                        + SearchPipelineService.ENABLED_SYSTEM_GENERATED_FACTORIES_SETTING.getKey()
                        + ", or name a search pipeline with the processors \"dedup\""
                );
            }
            return null;
        });
    }

    @Override
    public Map<String, Processor.Factory<SearchRequestProcessor>> getRequestProcessors(Parameters parameters) {
        return Map.of(
            DedupExt.NAME,
            (factories, tag, description, ignoreFailure, config, context) ->
                FoldRequestProcessor.named(tag, description, ignoreFailure, config, facts)
        );
    }

    @Override
    public Map<String, Processor.Factory<SearchResponseProcessor>> getResponseProcessors(Parameters parameters) {
        return Map.of(
            DedupExt.NAME,
            (factories, tag, description, ignoreFailure, config, context) ->
                new FoldResponseProcessor(tag, description, ignoreFailure, parameters.client)
        );
    }

    @Override
    public Map<String, SystemGeneratedFactory<SearchRequestProcessor>> getSystemGeneratedRequestProcessors(
        Parameters parameters
    ) {
        return Map.of(REQUESTS, new ForExt<>((tag, description, ignoreFailure) ->
            FoldRequestProcessor.generated(tag, description, ignoreFailure, facts)));
    }

    @Override
    public Map<String, SystemGeneratedFactory<SearchResponseProcessor>> getSystemGeneratedResponseProcessors(
        Parameters parameters
    ) {
        return Map.of(RESPONSES, new ForExt<>((tag, description, ignoreFailure) ->
            new FoldResponseProcessor(tag, description, ignoreFailure, parameters.client)));
    }
}
