// FABRIK on many chains side by side, as a C++ programmer would write it for vector instructions: the mark for our lanes.
// Thirty-two chains stand in the lanes of [number][lane] arrays; every chain takes the same number of iterations.
#include <cmath>
#include <vector>

constexpr int W = 32;

template <class T> static inline void pull(T *__restrict p, T *__restrict v, T length) {
    for (int l = 0; l < W; ++l) {
        const T x = p[l] - v[l], y = p[W + l] - v[W + l], z = p[2 * W + l] - v[2 * W + l];
        const T k = length / std::sqrt(x * x + y * y + z * z);
        p[l] = v[l] += k * x;
        p[W + l] = v[W + l] += k * y;
        p[2 * W + l] = v[2 * W + l] += k * z;
    }
}

// Moves (n + 1) points of each of count chains, all from one start, towards its target; count is a multiple of W.
template <class T>
static void run(const double *start, const double *lengths, int n, const double *targets, int count, int most, double *tips) {
    std::vector<T> points(3 * (n + 1) * W);
    alignas(64) T v[3 * W], goal[3 * W];
    for (int first = 0; first < count; first += W) {
        for (int i = 0; i < 3 * (n + 1); ++i)
            for (int l = 0; l < W; ++l) points[i * W + l] = T(start[i]);
        for (int l = 0; l < W; ++l)
            for (int r = 0; r < 3; ++r) goal[r * W + l] = T(targets[3 * (first + l) + r]);
        for (int k = 0; k < most; ++k) {
            for (int i = 0; i < 3 * W; ++i) v[i] = points[3 * n * W + i] = goal[i];
            for (int i = n - 1; i > 0; --i) pull<T>(&points[3 * i * W], v, T(lengths[i]));
            for (int r = 0; r < 3; ++r)
                for (int l = 0; l < W; ++l) v[r * W + l] = T(start[r]);
            for (int i = 0; i < n; ++i) pull<T>(&points[3 * (i + 1) * W], v, T(lengths[i]));
        }
        for (int l = 0; l < W; ++l)
            for (int r = 0; r < 3; ++r) tips[3 * (first + l) + r] = v[r * W + l];
    }
}

extern "C" void lanes_double(const double *start, const double *lengths, int n, const double *targets, int count, int most, double *tips) {
    run<double>(start, lengths, n, targets, count, most, tips);
}
extern "C" void lanes_single(const double *start, const double *lengths, int n, const double *targets, int count, int most, double *tips) {
    run<float>(start, lengths, n, targets, count, most, tips);
}
