package org.shinglefold.search;

import java.util.Map;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.pipeline.Processor;
import org.opensearch.search.pipeline.ProcessorGenerationContext;
import org.opensearch.search.pipeline.SystemGeneratedProcessor.SystemGeneratedFactory;

/** Makes a processor for each search that has {@code ext.dedup}. */
final class ForExt<T extends Processor> implements SystemGeneratedFactory<T> {
    /** Makes a processor. */
    @FunctionalInterface
    interface Maker<T> {
        T make(String tag, String description, boolean ignoreFailure);
    }

    private final Maker<T> maker;

    ForExt(Maker<T> maker) {
        this.maker = maker;
    }

    @Override
    public boolean shouldGenerate(ProcessorGenerationContext context) {
        SearchSourceBuilder source = context.searchRequest().source();
        return source != null && source.ext().stream().anyMatch(DedupExt.class::isInstance);
    }

    @Override
    public T create(
        Map<String, Processor.Factory<T>> factories,
        String tag,
        String description,
        boolean ignoreFailure,
        Map<String, Object> config,
        Processor.PipelineContext context
    ) {
        return maker.make(tag, description, ignoreFailure);
    }
}
