package org.shinglefold.fold;

import java.util.ArrayList;
import java.util.List;

/**
 * Leader clustering, block by block; later blocks do not change the groups of earlier ones.
 *
 * <p>In rank order, each free hit (one in no group) begins a group. A policy chooses the representative among
 * that hit and the free hits of its block that match it. The members are the free hits that match the
 * representative. Hits of later blocks join the first group whose representative they match.
 */
public final class LeaderFolding {
    /** A group by positions among the hits read: the representative, and all members including it. */
    public record Group(int representative, List<Integer> members) {}

    private final Scheme scheme;
    private final FoldOptions options;
    private final Matcher matcher;
    private final Values values = new Values();
    private final Counts counts = new Counts();
    private final List<Candidate> shown = new ArrayList<>();
    private final List<List<Integer>> members = new ArrayList<>();

    public LeaderFolding(Scheme scheme, FoldOptions options) {
        this.scheme = scheme;
        this.options = options;
        matcher = new Matcher(scheme, options);
    }

    /** Returns the counts of the hits folded. */
    public Counts counts() {
        return counts;
    }

    /** Returns how many groups there are. */
    public int size() {
        return shown.size();
    }

    /** Returns the groups in the order of their best-ranked members. */
    public List<Group> groups() {
        List<Group> groups = new ArrayList<>(shown.size());
        for (int at = 0; at < shown.size(); at++) {
            groups.add(new Group(shown.get(at).place(), members.get(at)));
        }
        return groups;
    }

    /** Folds the next hits in rank order, as one block. Cost: some 20 ns a pair. */
    public void add(List<? extends Row> rows) {
        List<Candidate> free = new ArrayList<>(rows.size());
        int earlier = shown.size();
        for (Row row : rows) {
            Candidate hit = candidate(row);
            if (!join(hit, earlier)) {
                free.add(hit);
            }
        }
        while (!free.isEmpty()) {
            free = begin(free);
        }
    }

    private Candidate candidate(Row row) {
        Fingerprint fingerprint = Fingerprint.of(row, scheme, matcher.needsSupershingles());
        int place = counts.count(fingerprint);
        double[] scopes = new double[options.scopes().size()];
        for (int at = 0; at < scopes.length; at++) {
            FoldOptions.Scope scope = options.scopes().get(at);
            scopes[at] = values.ofScope(scope, row.values(scope.field()));
        }
        return new Candidate(place, row, fingerprint, scopes);
    }

    private boolean join(Candidate hit, int earlier) {
        for (int at = 0; at < earlier; at++) {
            if (matcher.match(hit, shown.get(at))) {
                members.get(at).add(hit.place());
                return true;
            }
        }
        return false;
    }

    /** Begins a group with the first of the free hits, and returns those that stay free. */
    private List<Candidate> begin(List<Candidate> free) {
        Candidate chosen = free.get(0);
        if (!options.policies().isEmpty()) {
            List<Candidate> near = new ArrayList<>(List.of(chosen));
            for (Candidate other : free.subList(1, free.size())) {
                if (matcher.match(free.get(0), other)) {
                    near.add(other);
                }
            }
            chosen = Policy.choose(options.policies(), near);
        }
        List<Integer> group = new ArrayList<>();
        List<Candidate> rest = new ArrayList<>(free.size());
        for (Candidate other : free) {
            if (other == chosen || matcher.match(chosen, other)) {
                group.add(other.place());
            } else {
                rest.add(other);
            }
        }
        shown.add(chosen);
        members.add(group);
        return rest;
    }
}
