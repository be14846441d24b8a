# Tests of terms by mgcv's summary(), at fixed smoothing. Run from anywhere:
#
#     Rscript tests/summaries/mgcv_tests.R
#
# It writes mgcv_tests.csv and mgcv_tests.json beside itself. Needs only R and mgcv.

suppressPackageStartupMessages(library(mgcv))
this_file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
out_dir <- if (length(this_file) == 1) dirname(normalizePath(this_file)) else "."
num <- function(v) sprintf("%.17g", v)

# --- data: effects near the edge of what n rows can show, so that p-values are neither 0 nor 1 ----------
set.seed(7, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
n <- 150
data <- data.frame(x = runif(n)^1.5, v = runif(n), hour = runif(n, 0, 24), z = rnorm(n, 50, 10))
data$g <- sample(c("a", "b", "c"), n, replace = TRUE)
eta <- 0.3 * sin(2 * pi * data$x) + 0.02 * (data$z - 50) + 0.25 * (data$g == "b") +
  0.15 * cos(2 * pi * data$hour / 24)
data$y <- 10 * eta + 5 * rnorm(n)
data$count <- rpois(n, exp(0.5 + eta))

# --- fits: all knots are given, so that mgcv does not widen the range ------------------------------------
k <- 12
even <- function(lo, hi) {
  knots <- lo + (hi - lo) / (k - 3) * (-3:k)
  knots[4] <- lo
  knots[k + 1] <- hi
  knots
}
knots <- list(x = even(min(data$x), max(data$x)), v = even(0, 1), hour = seq(0, 24, length.out = k + 1))
splines <- "s(x, bs = 'ps', k = k, m = c(2, 2)) + s(v, bs = 'ps', k = k, m = c(2, 2))"
cyclic <- "s(hour, bs = 'cp', k = k, m = c(2, 2))"
fit <- function(response, smooths, family, sp) {
  gam(as.formula(paste(response, "~ z + g +", smooths)), family = family, data = data, knots = knots,
    sp = sp, control = gam.control(epsilon = 1e-12))
}

# --- output ------------------------------------------------------------------------------------------------
arr <- function(v) paste0("[", paste(num(v), collapse = ", "), "]")
field <- function(name, v) paste0("    \"", name, "\": ", arr(v))
describe <- function(name, model) {
  s <- summary(model)
  sp <- if (is.null(model$full.sp)) model$sp else model$full.sp
  lambda <- sapply(seq_along(model$smooth), function(i) sp[i] / model$smooth[[i]]$S.scale)
  # The statistic depends on the sign of an eigenvector, the p-value does not: only the latter is stored.
  paste0("  \"", name, "\": {\n", paste(c(
    field("lambda", lambda), field("dispersion", model$sig2), field("estimate", s$p.table[, 1]),
    field("se", s$p.table[, 2]), field("statistic", s$p.table[, 3]), field("p_value", s$p.table[, 4]),
    field("linear_p", s$pTerms.pv), field("edf", s$s.table[, 1]), field("smooth_p", s$s.table[, 4]),
    field("deviance_explained", s$dev.expl), field("log_likelihood", as.numeric(logLik(model))),
    field("residual_df", s$residual.df)), collapse = ",\n"), "\n  }")
}
write.csv(format(data, digits = 17, trim = TRUE), file.path(out_dir, "mgcv_tests.csv"), row.names = FALSE, quote = FALSE)
writeLines(paste0("{\n  \"mgcv_version\": \"", packageDescription("mgcv")$Version, "\",\n",
  describe("gaussian", fit("y", splines, gaussian(), c(2, 60))), ",\n",
  describe("poisson", fit("count", splines, poisson(), c(2, 60))), ",\n",
  # With no null space mgcv tests the variance of the term. Of other smooths it takes the bias for none,
  # we for one of the size that their prior expects: alone the two are the same.
  describe("cyclic", fit("y", cyclic, gaussian(), 3)), "\n}"),
  file.path(out_dir, "mgcv_tests.json"))
