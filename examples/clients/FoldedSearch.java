// opensearch-java through the gateway:
//   mvn -q dependency:copy-dependencies -DoutputDirectory=lib
//   GATEWAY_URL=http://localhost:9280 INDEX=news java -cp "lib/*" FoldedSearch.java
import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hc.core5.http.HttpHost;
import org.opensearch.client.json.JsonData;
import org.opensearch.client.json.jackson.JacksonJsonpMapper;
import org.opensearch.client.opensearch.OpenSearchClient;
import org.opensearch.client.opensearch.core.BulkRequest;
import org.opensearch.client.transport.httpclient5.ApacheHttpClient5TransportBuilder;

public class FoldedSearch {
    // The source of a hit has the fingerprint, too.
    @JsonIgnoreProperties(ignoreUnknown = true)
    public record Article(String title, String body) {}

    public static void main(String[] arguments) throws Exception {
        String index = System.getenv("INDEX");
        var transport = ApacheHttpClient5TransportBuilder.builder(HttpHost.create(System.getenv("GATEWAY_URL")))
            .setMapper(new JacksonJsonpMapper()).build();
        var client = new OpenSearchClient(transport);

        var bulk = new BulkRequest.Builder().index(index);
        int id = 0;
        for (String line : Files.readAllLines(Path.of("documents.jsonl"))) {
            var article = new ObjectMapper().readValue(line, Article.class);
            String name = String.valueOf(id++);
            bulk.operations(one -> one.index(action -> action.id(name).document(article)));
        }
        if (client.bulk(bulk.build()).errors()) throw new IllegalStateException("not all were stored");
        client.indices().refresh(request -> request.index(index));

        var page = client.search(request -> request.index(index)
            .query(query -> query.match(match -> match.field("body").query(text -> text.stringValue("old bridge"))))
            .ext("dedup", JsonData.of(Map.of("members", 5))), Article.class);
        long folded = 0;
        for (var hit : page.hits().hits()) {
            long copies = hit.innerHits().get("duplicates").hits().total().value() - 1;
            System.out.println(hit.source().title() + " (+" + copies + ")");
            folded += copies;
        }
        System.out.println("folded: " + folded);
        transport.close();
    }
}
