# Reference values of mgcv's k.check and concurvity. Run from anywhere:
#
#     Rscript tests/diagnostics/mgcv_check.R
#
# It writes mgcv_check.csv and mgcv_check.json beside itself. Needs only R and mgcv.

suppressPackageStartupMessages(library(mgcv))

this_file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
out_dir <- if (length(this_file) == 1) dirname(normalizePath(this_file)) else "."
num <- function(v) sprintf("%.17g", v)

# --- data -------------------------------------------------------------------
set.seed(20241, kind = "Mersenne-Twister", normal.kind = "Inversion",
         sample.kind = "Rejection")
n <- 200
x1 <- runif(n)
# Close to x1, so that the two smooths overlap; rounded, so that rows share
# values and the order among them matters.
x2 <- round(0.7 * x1 + 0.3 * runif(n), 2)
x3 <- runif(n)
y <- sin(9 * x1) + x2^2 + 0.3 * rnorm(n)

# Cubic B-splines on even knots from end to end, all given (see mgcv_ps.R).
k <- 7
even_knots <- function(x) {
  h <- diff(range(x)) / (k - 3)
  knots <- min(x) + h * (-3:k)
  knots[4] <- min(x)
  knots[k + 1] <- max(x)
  knots
}

# --- fit --------------------------------------------------------------------
# Fixed smoothing: the fit is one linear solve. k = 7 is too small for sin(9 x).
fit <- gam(y ~ s(x1, bs = "ps", k = k, m = c(2, 2)) +
             s(x2, bs = "ps", k = k, m = c(2, 2)) +
             s(x3, bs = "ps", k = k, m = c(2, 2)),
           knots = list(x1 = even_knots(x1), x2 = even_knots(x2), x3 = even_knots(x3)),
           sp = c(0.5, 0.5, 0.5))
# lambda = sp / S.scale is the factor of D'D (see mgcv_ps.R).
lambda <- sapply(fit$smooth, function(sm) 0.5 / sm$S.scale)

checked <- k.check(fit)          # columns k', edf, k-index, p-value
overlap <- concurvity(fit)       # rows worst, observed, estimate; first column "para"
pairs <- concurvity(fit, full = FALSE)$observed

# --- output -----------------------------------------------------------------
cols <- list(x1 = x1, x2 = x2, x3 = x3, y = y, residual = as.numeric(residuals(fit)))
writeLines(c(paste(names(cols), collapse = ","),
             do.call(paste, c(lapply(cols, num), sep = ","))),
           file.path(out_dir, "mgcv_check.csv"))

arr <- function(v) paste0("[", paste(num(v), collapse = ", "), "]")
str <- function(s) paste0("\"", s, "\"")
smooths <- 2:4
writeLines(paste0(
  "{\n",
  "  \"r_version\": ", str(paste(R.version$major, R.version$minor, sep = ".")), ",\n",
  "  \"mgcv_version\": ", str(packageDescription("mgcv")$Version), ",\n",
  "  \"calls\": [", str("k.check(fit)"), ", ", str("concurvity(fit)"), "],\n",
  "  \"k\": ", k, ",\n",
  "  \"lambda\": ", arr(lambda), ",\n",
  "  \"k_prime\": ", arr(checked[, "k'"]), ",\n",
  "  \"edf\": ", arr(checked[, "edf"]), ",\n",
  "  \"k_index\": ", arr(checked[, "k-index"]), ",\n",
  "  \"p_value\": ", arr(checked[, "p-value"]), ",\n",
  "  \"worst\": ", arr(overlap["worst", smooths]), ",\n",
  "  \"observed\": ", arr(overlap["observed", smooths]), ",\n",
  "  \"estimate\": ", arr(overlap["estimate", smooths]), ",\n",
  # Share of s(x1) that s(x2) alone explains, and the other way round.
  "  \"observed_by_the_other\": ", arr(c(pairs["s(x2)", "s(x1)"], pairs["s(x1)", "s(x2)"])), "\n",
  "}"), file.path(out_dir, "mgcv_check.json"))
