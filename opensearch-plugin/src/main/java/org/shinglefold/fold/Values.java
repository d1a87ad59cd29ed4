package org.shinglefold.fold;

import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Reads values of fields as the Python client does: as text, as dates, and as codes of scopes. */
final class Values {
    private static final int LONGEST_DATE = 64, LEAST_EXPONENT = 16;
    private static final Pattern MILLISECONDS = Pattern.compile("-?\\d+");
    /** What {@code datetime.fromisoformat} of Python 3.11 reads: with separators or without, also by weeks. */
    private static final Pattern ISO_8601 = Pattern.compile(
        "(?<year>\\d{4})"
            + "(?:(?<w>-?)W(?<week>\\d\\d)(?:\\k<w>(?<weekday>\\d))?|(?<d>-?)(?<month>\\d\\d)\\k<d>(?<day>\\d\\d))"
            + "(?:.(?<hour>\\d\\d)(?:(?<t>:?)(?<minute>\\d\\d)(?:\\k<t>(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?)?"
            + "(?:Z|(?<sign>[+-])(?<hours>\\d\\d)(?:(?<o>:?)(?<minutes>\\d\\d)(?:\\k<o>(?<seconds>\\d\\d))?)?)?)?",
        Pattern.DOTALL
    );

    /** The code of each combination of values of a scope. */
    private final Map<String, Integer> codes = new HashMap<>();

    /** Returns a value as Python writes it. */
    static String text(Object value) {
        if (value instanceof Boolean flag) {
            return flag ? "True" : "False";
        }
        return value instanceof Double || value instanceof Float ? decimal(value.toString()) : String.valueOf(value);
    }

    /** Returns a value as text, as users may write it: 5.0 or 5, True or true. */
    static List<String> spellings(Object value) {
        return List.of(text(value), value instanceof Boolean ? String.valueOf(value) : whole(value));
    }

    /** Returns a number in Python's notation: whole ones end with .0, exponents begin at 1e16 and below 1e-4. */
    private static String decimal(String java) {
        BigDecimal number = new BigDecimal(java).stripTrailingZeros();
        int exponent = number.precision() - number.scale() - 1;
        if (number.signum() == 0) {
            return java;
        }
        if (exponent >= -4 && exponent < LEAST_EXPONENT) {
            String plain = number.toPlainString();
            return plain.contains(".") ? plain : plain + ".0";
        }
        String digits = number.scaleByPowerOfTen(-exponent).toPlainString();
        return String.format(Locale.ROOT, "%se%s%02d", digits, exponent < 0 ? "-" : "+", Math.abs(exponent));
    }

    /** Returns a date, ISO 8601 or milliseconds, in seconds since 1970; NaN if it is neither. */
    static double moment(Object value) {
        if (value instanceof Number number) {
            return number.doubleValue() / 1000;
        }
        if (!(value instanceof String text) || text.length() > LONGEST_DATE) {
            return Double.NaN;
        }
        if (MILLISECONDS.matcher(text).matches()) {
            return Double.parseDouble(text) / 1000;
        }
        try {
            Instant instant = instant(text);
            long micros = Math.addExact(
                Math.multiplyExact(instant.getEpochSecond(), 1_000_000L), instant.getNano() / 1000
            );
            return micros / 1e6;
        } catch (DateTimeException | ArithmeticException notDate) {
            return Double.NaN;
        }
    }

    /** Returns a number that is equal for equal values of a scope, or seconds; NaN if there is no value. */
    double ofScope(FoldOptions.Scope scope, List<Object> values) {
        if (values.isEmpty()) {
            return Double.NaN;
        }
        if (scope.within() != null) {
            return moment(values.get(0));
        }
        String key = values.stream().map(Values::whole).distinct().sorted()
            .map(one -> one.length() + ":" + one).collect(Collectors.joining());
        return codes.computeIfAbsent(scope.field() + "\0" + key, unused -> codes.size());
    }

    /** Returns a value as text; 5 and 5.0 are equal, as the mappings of several indices may differ. */
    private static String whole(Object value) {
        if (value instanceof Double || value instanceof Float) {
            double number = ((Number) value).doubleValue();
            if (number == Math.rint(number) && !Double.isInfinite(number)) {
                return new BigDecimal(number).toBigInteger().toString();
            }
        }
        return text(value);
    }

    private static Instant instant(String text) {
        Matcher parts = ISO_8601.matcher(text);
        if (!parts.matches()) {
            throw new DateTimeException("no date");
        }
        int year = number(parts, "year");
        if (year == 0) {
            throw new DateTimeException("Python's dates begin with the year 1");
        }
        String day = parts.group("weekday") == null ? "1" : parts.group("weekday");
        LocalDate date = parts.group("week") == null
            ? LocalDate.of(year, number(parts, "month"), number(parts, "day"))
            : LocalDate.parse(parts.group("year") + "-W" + parts.group("week") + "-" + day, DateTimeFormatter.ISO_WEEK_DATE);
        String fraction = parts.group("fraction") == null ? "" : parts.group("fraction");
        int micros = Integer.parseInt((fraction + "000000").substring(0, 6));
        LocalTime time = LocalTime.of(
            number(parts, "hour"), number(parts, "minute"), number(parts, "second"), 1000 * micros
        );
        int offset = 3600 * number(parts, "hours") + 60 * number(parts, "minutes") + number(parts, "seconds");
        if (offset >= 24 * 3600) {
            throw new DateTimeException("an offset of a day");
        }
        return date.atTime(time).toInstant(ZoneOffset.UTC).minusSeconds("-".equals(parts.group("sign")) ? -offset : offset);
    }

    private static int number(Matcher parts, String name) {
        return parts.group(name) == null ? 0 : Integer.parseInt(parts.group(name));
    }
}
