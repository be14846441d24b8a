# Rscript --vanilla mgcv.R folder
# Fits the call of calls.txt to train.csv; of several calls the one with the smallest error on the rows
# of held_out.txt, of other families than the normal one that with the largest density there. Writes
# predicted.csv for test.csv and prints figures as JSON.
folder <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages(library(mgcv))

path <- function(name) file.path(folder, name)
peak <- function() {
  if (!file.exists("/proc/self/status")) return(sum(gc()[, 6]))
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
processor <- function() sum(proc.time()[c("user.self", "sys.self")])
elapsed <- function() proc.time()[["elapsed"]]
fit <- function(call, rows) eval(parse(text = call), list(rows = rows))

train <- read.csv(path("train.csv"), stringsAsFactors = TRUE)
test <- read.csv(path("test.csv"), stringsAsFactors = TRUE)
for (name in names(train)) {
  if (is.factor(train[[name]])) test[[name]] <- factor(test[[name]], levels(train[[name]]))
}
held_out <- scan(path("held_out.txt"), quiet = TRUE)
calls <- readLines(path("calls.txt"))
heard <- 0

is_normal <- function(model) model$family$family == "gaussian"
expected_of <- function(model, rows) {
  if (model$family$family == "gaulss") return(as.numeric(predict(model, rows, type = "response")[, 1]))
  as.numeric(predict(model, rows))
}
log_density <- function(model, rows) {
  if (model$family$family == "gaulss") {
    own <- predict(model, rows, type = "response")
    return(dnorm(rows$y, own[, 1], 1 / own[, 2], log = TRUE))
  }
  if (!is_normal(model)) {
    theta <- model$family$getTheta(TRUE)
    return(dt((rows$y - expected_of(model, rows)) / theta[2], theta[1], log = TRUE) - log(theta[2]))
  }
  own <- predict(model, rows, se.fit = TRUE)
  dnorm(rows$y, as.numeric(own$fit), sqrt(as.numeric(own$se.fit)^2 + model$sig2), log = TRUE)
}
error <- function(call) tryCatch({
  model <- fit(call, train[-held_out, ])
  rows <- train[held_out, ]
  if (is_normal(model)) mean((expected_of(model, rows) - rows$y)^2) else -mean(log_density(model, rows))
}, error = function(problem) {
  message("a candidate failed: ", conditionMessage(problem))
  Inf
})

imported <- peak()
start <- c(processor(), elapsed())
withCallingHandlers({
  choice <- if (length(calls) > 1) which.min(sapply(calls, error)) else 1
  model <- fit(calls[choice], train)
}, warning = function(problem) {
  heard <<- heard + 1
  message("warning: ", conditionMessage(problem))
  invokeRestart("muffleWarning")
})
fitted <- c(processor(), elapsed())
expected <- expected_of(model, test)
predicted <- c(processor(), elapsed())
most <- peak()
answer <- data.frame(mean = expected, log_density = log_density(model, test))
write.csv(answer, path("predicted.csv"), row.names = FALSE)
cat(sprintf(paste0('{"choice": %d, "fit": %.3f, "fit_wall": %.3f, "predict": %.3f, "predict_wall": %.3f, ',
                   '"peak": %.1f, "grown": %.1f, "warnings": %d, "version": "%s"}\n'),
  choice, fitted[1] - start[1], fitted[2] - start[2], predicted[1] - fitted[1], predicted[2] - fitted[2],
  most, most - imported, heard, as.character(packageVersion("mgcv"))))
